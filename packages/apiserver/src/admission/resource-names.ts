const computed = ["cpu", "memory", "ephemeral-storage"];

/** Names that quotas know without a prefix (`pkg/apis/core/helper`). */
const quotaResources = new Set([
  ...computed.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
  "requests.storage",
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
]);

/** Counted in whole numbers. */
export const wholeResources = new Set([
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
]);

export function isQuotaResource(name: string): boolean {
  return quotaResources.has(name) || /^(?:requests\.)?hugepages-/.test(name);
}

export function isStandardResource(name: string): boolean {
  return name === "storage" || isQuotaResource(name);
}
