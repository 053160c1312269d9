/** `config-features` (knative.dev/serving/pkg/apis/config/features.go): what templates may say beyond what every one may. */
export type Flag = "Enabled" | "Allowed" | "Disabled";

const podSpec = "kubernetes.podspec-";

/** Each flag and its default. Those of queue-proxy are not among them: there is none. */
const defaults = {
  "multi-container": "Enabled",
  [`${podSpec}volumes-emptydir`]: "Enabled",
  [`${podSpec}dryrun`]: "Allowed",
  [`${podSpec}affinity`]: "Disabled",
  [`${podSpec}topologyspreadconstraints`]: "Disabled",
  [`${podSpec}hostaliases`]: "Disabled",
  [`${podSpec}fieldref`]: "Disabled",
  [`${podSpec}nodeselector`]: "Disabled",
  [`${podSpec}runtimeclassname`]: "Disabled",
  [`${podSpec}securitycontext`]: "Disabled",
  [`${podSpec}shareprocessnamespace`]: "Disabled",
  [`${podSpec}hostipc`]: "Disabled",
  [`${podSpec}hostpid`]: "Disabled",
  [`${podSpec}hostnetwork`]: "Disabled",
  [`${podSpec}priorityclassname`]: "Disabled",
  [`${podSpec}schedulername`]: "Disabled",
  [`${podSpec}tolerations`]: "Disabled",
  [`${podSpec}init-containers`]: "Disabled",
  [`${podSpec}dnspolicy`]: "Disabled",
  [`${podSpec}dnsconfig`]: "Disabled",
  [`${podSpec}persistent-volume-claim`]: "Disabled",
  [`${podSpec}persistent-volume-write`]: "Disabled",
  [`${podSpec}volumes-hostpath`]: "Disabled",
  [`${podSpec}volumes-csi`]: "Disabled",
  [`${podSpec}volumes-ephemeral`]: "Disabled",
  [`${podSpec}volumes-image`]: "Disabled",
  "kubernetes.containerspec-addcapabilities": "Disabled",
  "tag-header-based-routing": "Disabled",
} as const satisfies Record<string, Flag>;

export type Feature = keyof typeof defaults;
export type FeatureSettings = Readonly<Record<Feature, Flag>>;

/** As in Knative, a value that is none of the three leaves the default. */
export function featureSettings(data: Readonly<Record<string, string>> = {}): FeatureSettings {
  const flags: Flag[] = ["Enabled", "Allowed", "Disabled"];
  const entries = Object.entries(defaults).map(([key, standard]) => {
    const given = data[key]?.toLowerCase();
    return [key, flags.find((flag) => flag.toLowerCase() === given) ?? standard];
  });
  return Object.fromEntries(entries) as FeatureSettings;
}

/** The fields of a Pod's spec that are allowed by a flag of their own. */
export const fieldsByFeature = {
  affinity: `${podSpec}affinity`,
  topologySpreadConstraints: `${podSpec}topologyspreadconstraints`,
  hostAliases: `${podSpec}hostaliases`,
  nodeSelector: `${podSpec}nodeselector`,
  runtimeClassName: `${podSpec}runtimeclassname`,
  shareProcessNamespace: `${podSpec}shareprocessnamespace`,
  hostIPC: `${podSpec}hostipc`,
  hostPID: `${podSpec}hostpid`,
  hostNetwork: `${podSpec}hostnetwork`,
  priorityClassName: `${podSpec}priorityclassname`,
  schedulerName: `${podSpec}schedulername`,
  tolerations: `${podSpec}tolerations`,
  dnsPolicy: `${podSpec}dnspolicy`,
  dnsConfig: `${podSpec}dnsconfig`,
} as const satisfies Record<string, Feature>;
