import { parseQuantity, type Quantity } from "../quantity.ts";
import { type Pod } from "../resources.ts";
import { podAmounts } from "./pod-resources.ts";
import { type Amounts, sumOf } from "./resource-list.ts";

/** `core/v1 ScopedResourceSelectorRequirement`. */
export interface ScopeRequirement {
  scopeName: string;
  operator: string;
  values?: string[];
}

const one = parseQuantity("1");
const computed = ["cpu", "memory", "ephemeral-storage"];
const names = new Set([
  "count/pods",
  "pods",
  ...computed.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);

export function podResourceNames(wanted: readonly string[]): string[] {
  return wanted.filter((name) => names.has(name) || isPrefixed(name));
}

/** Huge pages, and resources of others, which may only be requested. */
function isPrefixed(name: string): boolean {
  if (/^(?:requests\.)?hugepages-/.test(name)) return true;
  return name.startsWith("requests.") && name.includes("/");
}

/** A Pod that has ended, or whose time to end is over, counts as an object alone. */
export function podUsage(pod: Pod, now: number): Amounts {
  const counted: Amounts = new Map([["count/pods", one]]);
  if (isOver(pod, now)) return counted;
  const usage = usageOf(podAmounts(pod.spec, "requests"), podAmounts(pod.spec, "limits"));
  return sumOf(counted, usage);
}

/** Requests and limits under the names that quotas have for them. */
export function usageOf(requests: Amounts, limits: Amounts): Amounts {
  const usage = new Map<string, Quantity>([["pods", one]]);
  for (const [name, quantity] of requests) {
    if (computed.includes(name) || name.startsWith("hugepages-")) {
      usage.set(name, quantity).set(`requests.${name}`, quantity);
    } else if (name.includes("/")) usage.set(`requests.${name}`, quantity);
  }
  for (const [name, quantity] of limits) {
    if (computed.includes(name)) usage.set(`limits.${name}`, quantity);
  }
  return usage;
}

function isOver({ status, metadata }: Pod, now: number): boolean {
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  if (!deletionTimestamp || deletionGracePeriodSeconds === undefined) return false;
  return now > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

export function podIsInScope(
  { scopeName, operator, values = [] }: ScopeRequirement,
  pod: Pod,
): boolean {
  const { spec } = pod;
  switch (scopeName) {
    case "Terminating":
      return (spec?.activeDeadlineSeconds ?? -1) >= 0;
    case "NotTerminating":
      return (spec?.activeDeadlineSeconds ?? -1) < 0;
    case "BestEffort":
      return isBestEffort(pod);
    case "NotBestEffort":
      return !isBestEffort(pod);
    case "PriorityClass":
      return hasPriority(spec?.priorityClassName ?? "", operator, values);
    case "CrossNamespacePodAffinity":
      return reachesOtherNamespaces(pod);
  }
  return false;
}

function hasPriority(name: string, operator: string, values: string[]): boolean {
  switch (operator) {
    case "Exists":
      return name !== "";
    case "DoesNotExist":
      return name === "";
    case "In":
      return values.includes(name);
    case "NotIn":
      return !values.includes(name);
  }
  return false;
}

function isBestEffort({ spec }: Pod): boolean {
  return [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].every(({ resources }) =>
    ["cpu", "memory"].every(
      (name) => !amount(resources?.requests?.[name]) && !amount(resources?.limits?.[name]),
    ),
  );
}

function amount(text: string | number | undefined): boolean {
  return text !== undefined && parseQuantity(text).nano > 0n;
}

function reachesOtherNamespaces({ spec }: Pod): boolean {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {};
  return [podAffinity, podAntiAffinity].some((affinity) => {
    const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const terms = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)];
    return terms.some((term) => term.namespaces?.length || term.namespaceSelector);
  });
}
