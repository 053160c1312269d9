import { parseQuantity, type Pod, type UnknownObject } from "@spry/kube";
import { nameProblems } from "../resources/metadata.ts";

type PodSpec = NonNullable<Pod["spec"]>;
type Container = PodSpec["containers"][number];
interface Template {
  metadata?: { annotations?: Record<string, string> };
  spec?: PodSpec;
}

const deprecatedAnnotations: Record<string, string> = {
  "scheduler.alpha.kubernetes.io/critical-pod":
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  "security.alpha.kubernetes.io/sysctls":
    'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls":
    'non-functional in v1.11+; use the "sysctls" field instead',
};
const nano = 1_000_000_000n;

/** Of an object whose Pods are named after it. */
export function podNameWarnings(
  { metadata }: UnknownObject,
  use = "Pod names and hostnames",
): string[] {
  const problems = nameProblems(metadata.name ?? "", "label");
  if (problems.length === 0) return [];
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(" ")}]`,
  ];
}

/**
 * What is allowed in a Pod, or in a template of one, but most likely not intended (`pkg/api/pod/warnings.go`). `path`
 * is that of the template.
 */
export function podWarnings({ metadata, spec }: Template, path = ""): string[] {
  if (!spec) return [];
  const at = path ? `${path}.` : "";
  const warnings: string[] = [];
  const constraints = (spec as { topologySpreadConstraints?: { labelSelector?: object }[] })
    .topologySpreadConstraints;
  for (const [index, { labelSelector }] of (constraints ?? []).entries()) {
    if (labelSelector) continue;
    const field = `${at}spec.topologySpreadConstraints[${index}].labelSelector`;
    warnings.push(`${field}: a null labelSelector results in matching no pod`);
  }
  for (const [key, detail] of Object.entries(deprecatedAnnotations)) {
    if (metadata?.annotations?.[key] !== undefined)
      warnings.push(`${at}metadata.annotations[${key}]: ${detail}`);
  }
  warnings.push(...repeated(spec, at));
  const groups = { initContainers: spec.initContainers, containers: spec.containers };
  for (const [group, containers] of Object.entries(groups)) {
    for (const [index, container] of (containers ?? []).entries())
      warnings.push(...containerWarnings(container, `${at}spec.${group}[${index}]`));
  }
  warnings.push(...portWarnings(groups, at));
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    const detail = "must be >= 0; negative values are invalid and will be treated as 1";
    warnings.push(`${at}spec.terminationGracePeriodSeconds: ${detail}`);
  }
  return warnings;
}

function repeated({ hostAliases = [], imagePullSecrets = [] }: PodSpec, at: string): string[] {
  const warnings: string[] = [];
  const check = (list: (string | undefined)[], field: string, key: string) => {
    for (const [index, each] of list.entries()) {
      if (list.indexOf(each) < index)
        warnings.push(
          `${at}spec.${field}[${index}].${key}: duplicate ${key} ${JSON.stringify(each)}`,
        );
    }
  };
  check(
    hostAliases.map(({ ip }) => ip),
    "hostAliases",
    "ip",
  );
  const names = imagePullSecrets.map(({ name }) => name ?? "");
  check(names, "imagePullSecrets", "name");
  for (const [index, name] of names.entries()) {
    if (name === "")
      warnings.push(`${at}spec.imagePullSecrets[${index}].name: invalid empty name ""`);
  }
  return warnings;
}

function containerWarnings({ env = [], resources }: Container, path: string): string[] {
  const warnings: string[] = [];
  for (const list of ["limits", "requests"] as const) {
    for (const name of ["memory", "ephemeral-storage"]) {
      const amount = resources?.[list]?.[name];
      if (amount === undefined || parseQuantity(amount).nano % nano === 0n) continue;
      const detail = `fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`;
      warnings.push(`${path}.resources.${list}[${name}]: ${detail}`);
    }
  }
  const seen = new Set<string>();
  for (const [index, { name = "", value = "", valueFrom }] of env.entries()) {
    const reference = `$(${name})`;
    const extends_ = !valueFrom && value !== reference && value.includes(reference);
    if (seen.has(name) && !extends_)
      warnings.push(
        `${path}.env[${index}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
      );
    seen.add(name);
  }
  return warnings;
}

interface PortPlace {
  field: string;
  hostIP: string;
  hostPort: number;
}

function portWarnings(groups: Record<string, Container[] | undefined>, at: string): string[] {
  const warnings: string[] = [];
  const doubles: string[] = [];
  const known = new Map<string, PortPlace[]>();
  const named = new Map<string, string>();
  for (const [group, containers = []] of Object.entries(groups)) {
    for (const [place, { ports = [] }] of containers.entries()) {
      for (const [index, port] of ports.entries()) {
        const { hostIP = "", hostPort = 0 } = port as { hostIP?: string; hostPort?: number };
        const field = `${at}spec.${group}[${place}].ports[${index}]`;
        const key = `${port.containerPort}/${port.protocol ?? "TCP"}`;
        const others = known.get(key) ?? [];
        for (const other of others) {
          const relation = relationOf({ field, hostIP, hostPort }, other);
          if (relation) warnings.push(`${field}: ${relation} port definition with ${other.field}`);
        }
        known.set(key, [...others, { field, hostIP, hostPort }]);
        const first = port.name && named.get(port.name);
        if (first) {
          const detail = `services and probes that select ports by name will use ${first}`;
          doubles.push(
            `${field}: duplicate port name ${JSON.stringify(port.name)} with ${first}, ${detail}`,
          );
        } else if (port.name) named.set(port.name, field);
      }
    }
  }
  return [...warnings, ...doubles];
}

function relationOf(port: PortPlace, other: PortPlace): string | undefined {
  if (port.hostIP === other.hostIP && port.hostPort === other.hostPort) return "duplicate";
  if (port.hostPort === 0 || other.hostPort === 0) return "overlapping";
  const oneIsOpen = (port.hostIP === "") !== (other.hostIP === "");
  return port.hostPort === other.hostPort && oneIsOpen ? "dangerously ambiguous" : undefined;
}

interface ServiceSpec {
  type?: string;
  clusterIP?: string;
  loadBalancerIP?: string;
  externalIPs?: string[];
  externalName?: string;
  sessionAffinity?: string;
  trafficDistribution?: string;
}

/** `pkg/api/service/warnings.go`. */
export function serviceWarnings({ metadata, spec }: UnknownObject): string[] {
  const {
    type,
    clusterIP,
    loadBalancerIP,
    externalIPs = [],
    externalName,
    ...rest
  } = (spec ?? {}) as ServiceSpec;
  const warnings: string[] = [];
  const hints = "service.kubernetes.io/topology-aware-hints";
  if (metadata.annotations?.[hints] !== undefined)
    warnings.push(
      `annotation ${hints} is deprecated, please use service.kubernetes.io/topology-mode instead`,
    );
  const isHeadless = type === "ClusterIP" && clusterIP === "None";
  if (isHeadless) {
    const ignored = (field: string) =>
      warnings.push(`spec.${field} is ignored for headless services`);
    if (loadBalancerIP) ignored("loadBalancerIP");
    if (externalIPs.length > 0) ignored("externalIPs");
    if (rest.sessionAffinity !== "None") ignored("SessionAffinity");
  }
  const isExternal = type === "ExternalName";
  if (externalIPs.length > 0 && !isHeadless && !isExternal)
    warnings.push(
      "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
  if (isExternal && externalIPs.length > 0)
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  if (!isExternal && externalName)
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  if (rest.trafficDistribution === "PreferClose")
    warnings.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"');
  return warnings;
}
