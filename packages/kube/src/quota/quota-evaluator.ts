import { type KubeObject } from "../objects.ts";
import { parseQuantity } from "../quantity.ts";
import { type Pod, type Service } from "../resources.ts";
import { amountsOf, type Amounts } from "./resource-list.ts";
import { type ScopeRequirement, podIsInScope, podUsage, podResourceNames } from "./pod-usage.ts";

export { type ScopeRequirement } from "./pod-usage.ts";

/** How objects of one kind count towards quotas (`k8s.io/kubernetes/pkg/quota/v1`). */
export interface QuotaEvaluator {
  /** Those of a quota's resource names that objects of the kind use. */
  matching(names: readonly string[]): string[];
  /** What an object uses; `now` in ms. */
  usage(object: KubeObject, now: number): Amounts;
  isInScope(requirement: ScopeRequirement, object: KubeObject): boolean;
  /** Whether an update can change what the object uses. */
  countsUpdates: boolean;
}

interface ScopedSpec {
  scopes?: string[] | undefined;
  scopeSelector?: { matchExpressions?: ScopeRequirement[] } | undefined;
}

/** The conditions on objects of both ways to write them. */
export function scopesOf(spec: ScopedSpec | undefined): ScopeRequirement[] {
  const named = (spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: "Exists" }));
  return [...named, ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

/** Names that count objects besides `count/…`. */
const legacyNames = new Set(["configmaps", "resourcequotas", "replicationcontrollers", "secrets"]);
const one = parseQuantity("1");
const none = parseQuantity("0");

export function quotaEvaluatorOf(group: string, plural: string): QuotaEvaluator {
  const own = group === "" ? special[plural] : undefined;
  if (own) return own;
  const names = [countName(group, plural)];
  if (group === "" && legacyNames.has(plural)) names.push(plural);
  return {
    matching: (wanted) => wanted.filter((name) => names.includes(name)),
    usage: () => new Map(names.map((name) => [name, one])),
    isInScope: () => false,
    countsUpdates: false,
  };
}

/** `count/deployments.apps` → the resource; undefined for another name. */
export function countedResource(name: string): { group: string; plural: string } | undefined {
  if (legacyNames.has(name)) return { group: "", plural: name };
  const match = /^count\/([^./]+)(?:\.(.+))?$/.exec(name);
  return match ? { plural: match[1] ?? "", group: match[2] ?? "" } : undefined;
}

function countName(group: string, plural: string): string {
  return `count/${plural}${group && `.${group}`}`;
}

const serviceNames = ["count/services", "services", "services.loadbalancers", "services.nodeports"];
const claimNames = ["persistentvolumeclaims", "requests.storage"];
const classSuffix = ".storageclass.storage.k8s.io/";

const special: Record<string, QuotaEvaluator> = {
  pods: {
    matching: podResourceNames,
    usage: (object, now) => podUsage(object as Pod, now),
    isInScope: (requirement, object) => podIsInScope(requirement, object as Pod),
    countsUpdates: false,
  },
  services: {
    matching: (names) => names.filter((name) => serviceNames.includes(name)),
    usage: (object) => serviceUsage(object as Service),
    isInScope: () => false,
    countsUpdates: true,
  },
  persistentvolumeclaims: {
    matching: (names) =>
      names.filter(
        (name) =>
          name === "count/persistentvolumeclaims" ||
          claimNames.includes(name) ||
          claimNames.some((each) => name.endsWith(classSuffix + each)),
      ),
    usage: claimUsage,
    isInScope: () => false,
    countsUpdates: true,
  },
};

function serviceUsage({ spec }: Service): Amounts {
  const { type, ports = [] } = spec ?? {};
  const allocates = spec?.allocateLoadBalancerNodePorts;
  let nodePorts = 0;
  if (type === "NodePort") nodePorts = ports.length;
  if (type === "LoadBalancer") {
    nodePorts =
      allocates === false ? ports.filter(({ nodePort }) => nodePort).length : ports.length;
  }
  return new Map([
    ["count/services", one],
    ["services", one],
    ["services.loadbalancers", type === "LoadBalancer" ? one : none],
    ["services.nodeports", parseQuantity(nodePorts)],
  ]);
}

function claimUsage(object: KubeObject): Amounts {
  const { spec } = object as {
    spec?: { storageClassName?: string; resources?: { requests?: Record<string, string> } };
  };
  const usage = new Map([
    ["count/persistentvolumeclaims", one],
    ["persistentvolumeclaims", one],
  ]);
  const storageClass = spec?.storageClassName;
  const storage = amountsOf(spec?.resources?.requests).get("storage");
  if (storageClass) usage.set(`${storageClass}${classSuffix}persistentvolumeclaims`, one);
  if (storage) {
    usage.set("requests.storage", storage);
    if (storageClass) usage.set(`${storageClass}${classSuffix}requests.storage`, storage);
  }
  return usage;
}
