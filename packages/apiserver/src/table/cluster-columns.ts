import { type Event, type Lease, type Node, type UnknownObject } from "@spry/kube";
import { ageColumn, type Column, column, nameColumn } from "./column.ts";
import { since } from "./duration.ts";

const wide = { wide: true };
const integer = { type: "integer" } as const;
type Any = UnknownObject;

const createdAt: Column = {
  name: "Created At",
  type: "date",
  cell: ({ metadata }) => metadata.creationTimestamp ?? "<unknown>",
};

function spec(object: Any): Record<string, unknown> {
  return (object.spec ?? {}) as Record<string, unknown>;
}

function status(object: Any): Record<string, unknown> {
  return (object.status ?? {}) as Record<string, unknown>;
}

function text(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join(",") || undefined;
  return value === undefined || value === null ? undefined : String(value);
}

function sizeOf(value: unknown): number {
  return Object.keys(value ?? {}).length;
}

const webhookColumns = [
  column("Webhooks", ({ webhooks }: Any) => (webhooks as [] | undefined)?.length ?? 0, integer),
  ageColumn,
];

const bindingColumns = [
  column("Role", ({ roleRef }: Any) => {
    const { kind, name } = (roleRef ?? {}) as { kind?: string; name?: string };
    return `${kind}/${name}`;
  }),
  ageColumn,
  ...(["User", "Group", "ServiceAccount"] as const).map((kind) =>
    column(`${kind}s`, ({ subjects }: Any) => subjectNames(subjects, kind), wide),
  ),
];

function subjectNames(subjects: unknown, kind: string): string {
  const all = (subjects ?? []) as { kind: string; name: string; namespace?: string }[];
  return all
    .filter((each) => each.kind === kind)
    .map(({ name, namespace = "" }) => (kind === "ServiceAccount" ? `${namespace}/${name}` : name))
    .join(", ");
}

const storageClass = column(
  "StorageClass",
  (object: Any) => text(spec(object).storageClassName) ?? "",
);
const attributesClass = column(
  "VolumeAttributesClass",
  (object: Any) => text(spec(object).volumeAttributesClassName) ?? "<unset>",
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

const volumeMode = column("VolumeMode", (object: Any) => text(spec(object).volumeMode), wide);

function capacity(value: unknown): string {
  return text((value as { storage?: string } | undefined)?.storage) ?? "";
}

/** Kind → columns after the name, for configuration and the cluster itself. */
export const clusterColumns: Record<string, Column[]> = {
  Namespace: [column("Status", (object: Any) => text(status(object).phase)), ageColumn],
  ConfigMap: [
    column("Data", ({ data, binaryData }: Any) => sizeOf(data) + sizeOf(binaryData)),
    ageColumn,
  ],
  Secret: [
    column("Type", ({ type }: Any) => text(type)),
    column("Data", ({ data }: Any) => sizeOf(data)),
    ageColumn,
  ],
  Node: [
    column<Node>("Status", nodeStatus),
    column<Node>("Roles", nodeRoles),
    ageColumn,
    column<Node>("Version", (node) => node.status?.nodeInfo?.kubeletVersion),
    column<Node>("Internal-IP", (node) => address(node, "InternalIP"), wide),
    column<Node>("External-IP", (node) => address(node, "ExternalIP"), wide),
    column<Node>("OS-Image", (node) => node.status?.nodeInfo?.osImage || "<unknown>", wide),
    column<Node>(
      "Kernel-Version",
      (node) => node.status?.nodeInfo?.kernelVersion || "<unknown>",
      wide,
    ),
    column<Node>(
      "Container-Runtime",
      (node) => node.status?.nodeInfo?.containerRuntimeVersion || "<unknown>",
      wide,
    ),
  ],
  Lease: [column<Lease>("Holder", (lease) => lease.spec?.holderIdentity), ageColumn],
  CustomResourceDefinition: [createdAt],
  MutatingWebhookConfiguration: webhookColumns,
  ValidatingWebhookConfiguration: webhookColumns,
  ClusterRole: [createdAt],
  Role: [createdAt],
  ClusterRoleBinding: bindingColumns,
  RoleBinding: bindingColumns,
  PriorityClass: [
    column("Value", ({ value }: Any) => Number(value ?? 0), integer),
    column("Global-Default", ({ globalDefault }: Any) => globalDefault === true, {
      type: "boolean",
    }),
    ageColumn,
    column(
      "PreemptionPolicy",
      ({ preemptionPolicy }: Any) => text(preemptionPolicy) ?? "PreemptLowerPriority",
      wide,
    ),
  ],
  PodDisruptionBudget: [
    column("Min Available", (object: Any) => text(spec(object).minAvailable) ?? "N/A"),
    column("Max Unavailable", (object: Any) => text(spec(object).maxUnavailable) ?? "N/A"),
    column(
      "Allowed Disruptions",
      (object: Any) => Number(status(object).disruptionsAllowed ?? 0),
      integer,
    ),
    ageColumn,
  ],
  ResourceQuota: [
    column("Request", (object: Any) => quotas(object, (name) => !name.startsWith("limits."))),
    column("Limit", (object: Any) => quotas(object, (name) => name.startsWith("limits."))),
    ageColumn,
  ],
  LimitRange: [createdAt],
  PersistentVolumeClaim: [
    column("Status", (object: Any) => text(status(object).phase) ?? ""),
    column("Volume", (object: Any) => text(spec(object).volumeName) ?? ""),
    column("Capacity", (object: Any) => capacity(status(object).capacity)),
    column("Access Modes", (object: Any) => accessModes(status(object).accessModes)),
    storageClass,
    attributesClass,
    ageColumn,
    volumeMode,
  ],
  PersistentVolume: [
    column("Capacity", (object: Any) => capacity(spec(object).capacity)),
    column("Access Modes", (object: Any) => accessModes(spec(object).accessModes)),
    column(
      "Reclaim Policy",
      (object: Any) => text(spec(object).persistentVolumeReclaimPolicy) ?? "",
    ),
    column("Status", (object: Any) => text(status(object).phase) ?? ""),
    column("Claim", (object: Any) => {
      const claim = spec(object).claimRef as { namespace?: string; name?: string } | undefined;
      return claim ? `${claim.namespace}/${claim.name}` : "";
    }),
    storageClass,
    column("Reason", (object: Any) => text(status(object).reason) ?? ""),
    ageColumn,
    volumeMode,
  ],
};

/** Events are told by when and what; their names come last. */
export const eventColumns: Column[] = [
  column<Event>("Last Seen", (event) => since(eventTime(event))),
  column<Event>("Type", ({ type }) => type ?? ""),
  column<Event>("Reason", ({ reason }) => reason ?? ""),
  column("Object", (event: Any) => {
    const { kind = "", name = "" } = (event.involvedObject ?? {}) as {
      kind?: string;
      name?: string;
    };
    return `${kind.toLowerCase()}/${name}`;
  }),
  column(
    "Subobject",
    (event: Any) => ((event.involvedObject ?? {}) as { fieldPath?: string }).fieldPath ?? "",
    wide,
  ),
  column<Event>(
    "Source",
    ({ source, reportingComponent, reportingInstance }) =>
      (source?.component
        ? [source.component, source.host]
        : [reportingComponent, reportingInstance]
      )
        .filter(Boolean)
        .join(", "),
    wide,
  ),
  column("Message", (event: Any) => (text(event.message) ?? "").trim()),
  column<Event>(
    "First Seen",
    (event) => since(text(event.firstTimestamp) ?? text(event.eventTime)),
    wide,
  ),
  column(
    "Count",
    (event: Any) => {
      const series = event.series as { count?: number } | undefined;
      return Number((series?.count ?? event.count) || 1);
    },
    wide,
  ),
  { ...nameColumn, priority: 1 },
];

function eventTime(event: Event): string | undefined {
  const series = event.series as { lastObservedTime?: unknown } | undefined;
  return (
    text(series?.lastObservedTime) ??
    text(event.lastTimestamp) ??
    text(event.firstTimestamp) ??
    text(event.eventTime)
  );
}

function nodeStatus(node: Node): string {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  const word = ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown";
  return node.spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function nodeRoles({ metadata }: Node): string | undefined {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith(prefix));
  return (
    roles
      .map((key) => key.slice(prefix.length))
      .sort()
      .join(",") || undefined
  );
}

function address(node: Node, type: string): string | undefined {
  return node.status?.addresses?.find((each) => each.type === type)?.address;
}

function quotas(object: Any, wanted: (name: string) => boolean): string {
  const { hard = {}, used = {} } = status(object) as Record<string, Record<string, string>>;
  return Object.keys(hard)
    .filter(wanted)
    .sort()
    .map((name) => `${name}: ${used[name] ?? "0"}/${hard[name]}`)
    .join(", ");
}
