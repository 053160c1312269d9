/** How strict the platform is with Pods of namespaces that have no label for it. */
export const podSecurityLevels = ["privileged", "baseline", "restricted"] as const;
export type PodSecurityLevel = (typeof podSecurityLevels)[number];
