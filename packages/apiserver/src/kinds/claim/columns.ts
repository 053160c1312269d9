import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, wide } from "../../table/column.ts";
import { spec, status, text } from "../../table/fields.ts";

const storageClass = column(
  "StorageClass",
  (object: UnknownObject) => text(spec(object).storageClassName) ?? "",
);
const attributesClass = column(
  "VolumeAttributesClass",
  (object: UnknownObject) => text(spec(object).volumeAttributesClassName) ?? "<unset>",
);
const modeNames: Record<string, string> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

function accessModes(modes: unknown): string {
  const given = new Set((modes ?? []) as string[]);
  return Object.keys(modeNames)
    .filter((mode) => given.has(mode))
    .map((mode) => modeNames[mode])
    .join(",");
}

const volumeMode = column(
  "VolumeMode",
  (object: UnknownObject) => text(spec(object).volumeMode),
  wide,
);

function capacity(value: unknown): string {
  return text((value as { storage?: string } | undefined)?.storage) ?? "";
}

export const claimColumns: Column[] = [
  column("Status", (object: UnknownObject) => text(status(object).phase) ?? ""),
  column("Volume", (object: UnknownObject) => text(spec(object).volumeName) ?? ""),
  column("Capacity", (object: UnknownObject) => capacity(status(object).capacity)),
  column("Access Modes", (object: UnknownObject) => accessModes(status(object).accessModes)),
  storageClass,
  attributesClass,
  ageColumn,
  volumeMode,
];

export const volumeColumns: Column[] = [
  column("Capacity", (object: UnknownObject) => capacity(spec(object).capacity)),
  column("Access Modes", (object: UnknownObject) => accessModes(spec(object).accessModes)),
  column(
    "Reclaim Policy",
    (object: UnknownObject) => text(spec(object).persistentVolumeReclaimPolicy) ?? "",
  ),
  column("Status", (object: UnknownObject) => text(status(object).phase) ?? ""),
  column("Claim", (object: UnknownObject) => {
    const claim = spec(object).claimRef as { namespace?: string; name?: string } | undefined;
    return claim ? `${claim.namespace}/${claim.name}` : "";
  }),
  storageClass,
  column("Reason", (object: UnknownObject) => text(status(object).reason) ?? ""),
  ageColumn,
  volumeMode,
];
