import path from "node:path";
import { type Volume, type VolumeMount } from "@spry/kube";
import { type Feature, type FeatureSettings } from "../settings/feature-settings.ts";
import { FieldErrors, isSet, onlyFields } from "./field-error.ts";
import { isLabel1123 } from "./names.ts";

const sources = ["secret", "configMap", "projected", "emptyDir"];
const projections = ["secret", "configMap", "serviceAccountToken", "downwardAPI"];
/** Sources of other kinds, with the flag of each and the name that Knative calls it by. */
const flagged: Record<string, { feature: Feature; kind: string }> = {
  persistentVolumeClaim: {
    feature: "kubernetes.podspec-persistent-volume-claim",
    kind: "Persistent volume claim",
  },
  emptyDir: { feature: "kubernetes.podspec-volumes-emptydir", kind: "EmptyDir volume" },
  hostPath: { feature: "kubernetes.podspec-volumes-hostpath", kind: "HostPath volume" },
  csi: { feature: "kubernetes.podspec-volumes-csi", kind: "CSI volume" },
  ephemeral: { feature: "kubernetes.podspec-volumes-ephemeral", kind: "Ephemeral volume" },
  image: { feature: "kubernetes.podspec-volumes-image", kind: "Image volume" },
};
/** What containers may write to. */
const writable = ["emptyDir", "persistentVolumeClaim", "ephemeral", "hostPath", "csi"] as const;
const reservedPaths = new Set(["/", "/dev", "/dev/log"]);

export function checkVolumes(
  volumes: readonly Volume[],
  mounted: ReadonlySet<string>,
  features: FeatureSettings,
): FieldErrors {
  const errors = new FieldErrors();
  const seen = new Set<string>();
  for (const [i, volume] of volumes.entries()) {
    const { name } = volume;
    const own = new FieldErrors();
    if (seen.has(name)) own.add(`duplicate volume name ${JSON.stringify(name)}`, "name");
    if (!mounted.has(name)) own.add(`volume with name ${JSON.stringify(name)} not mounted`, "name");
    seen.add(name);
    errors.via(`[${i}]`, own.via("", checkVolume(volume, features)));
  }
  return errors;
}

function checkVolume(volume: Volume, features: FeatureSettings): FieldErrors {
  const errors = new FieldErrors();
  const given = Object.entries(volume)
    .filter(([field, value]) => field !== "name" && isSet(value))
    .map(([field]) => field);
  for (const field of given) {
    const { feature, kind } = flagged[field] ?? {};
    if (feature && features[feature] !== "Enabled")
      errors.add(`${kind} support is disabled, but found ${kind} ${volume.name}`, field);
    else if (!feature && !sources.includes(field)) errors.disallowed(field);
  }
  const claim = volume.persistentVolumeClaim;
  if (
    claim &&
    !claim.readOnly &&
    features["kubernetes.podspec-persistent-volume-claim"] === "Enabled" &&
    features["kubernetes.podspec-persistent-volume-write"] !== "Enabled"
  )
    errors.add(
      `Persistent volume write support is disabled, but found persistent volume claim ${claim.claimName} that is not read-only`,
      "persistentVolumeClaim",
    );
  if (!volume.name) errors.missing("name");
  else if (!isLabel1123(volume.name)) errors.invalid(volume.name, "name");
  const allowed = given.filter((field) => sources.includes(field) || field in flagged);
  for (const kind of ["secret", "configMap"] as const)
    errors.via("", checkItems(volume[kind]?.items));
  for (const [i, projection] of (volume.projected?.sources ?? []).entries())
    errors.via(`projected[${i}]`, checkProjection(projection));
  if (volume.emptyDir?.medium && volume.emptyDir.medium !== "Memory")
    errors.invalid(volume.emptyDir.medium, "emptyDir.medium");
  if (given.length === 0) errors.missingOneOf(...sources);
  else if (allowed.length > 1) errors.multipleOneOf(...allowed);
  return errors;
}

type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

function checkProjection(projection: Projection): FieldErrors {
  const errors = onlyFields(projection, projections);
  const given = projections.filter((kind) => isSet(projection[kind as keyof Projection]));
  if (given.length === 0) errors.missingOneOf(...projections);
  if (given.length > 1) errors.multipleOneOf(...given);
  for (const kind of ["secret", "configMap"] as const) {
    const source = projection[kind];
    if (!source) continue;
    const own = onlyFields(source, ["name", "items", "optional"]);
    if (!source.name) own.missing("name");
    errors.via(kind, own.via("", checkItems(source.items)));
  }
  const token = projection.serviceAccountToken;
  if (token && !token.path) errors.missing("serviceAccountToken.path");
  for (const [i, item] of (projection.downwardAPI?.items ?? []).entries()) {
    const place = `downwardAPI.items[${i}]`;
    const own = onlyFields(item, ["path", "fieldRef", "resourceFieldRef", "mode"]);
    if (!item.fieldRef && !item.resourceFieldRef) own.missingOneOf("fieldRef", "resourceFieldRef");
    if (item.fieldRef && item.resourceFieldRef)
      own.add("Within a single item, cannot set both", ["resourceFieldRef", "fieldRef"]);
    if (!item.path) own.missing("path");
    errors.via(place, own);
  }
  return errors;
}

function checkItems(items: readonly { key: string; path: string }[] | undefined): FieldErrors {
  const errors = new FieldErrors();
  for (const [i, item] of (items ?? []).entries()) {
    const own = onlyFields(item, ["key", "path", "mode"]);
    if (!item.key) own.missing("key");
    if (!item.path) own.missing("path");
    errors.via(`items[${i}]`, own);
  }
  return errors;
}

export function checkMounts(
  mounts: readonly VolumeMount[],
  volumes: readonly Volume[],
): FieldErrors {
  const errors = new FieldErrors();
  const paths = new Set<string>();
  for (const [i, mount] of mounts.entries()) {
    const own = onlyFields(mount, ["name", "readOnly", "mountPath", "subPath"]);
    const volume = volumes.find(({ name }) => name === mount.name);
    if (!volume) own.add("volumeMount has no matching volume", "name");
    const mountPath = mount.mountPath ?? "";
    const clean = path.posix.normalize(mountPath).replace(/(.)\/$/, "$1");
    if (!mountPath) own.missing("mountPath");
    else if (reservedPaths.has(clean))
      own.add(`mountPath ${JSON.stringify(clean)} is a reserved path`, "mountPath");
    else if (!path.posix.isAbsolute(mountPath)) own.invalid(mountPath, "mountPath");
    else if (paths.has(clean))
      own.invalid(`${JSON.stringify(mountPath)} must be unique`, "mountPath");
    paths.add(clean);
    if (!writable.some((kind) => volume?.[kind]) && !mount.readOnly)
      own.add("volume mount should be readOnly for this type of volume", "readOnly");
    errors.via(`[${i}]`, own);
  }
  return errors;
}
