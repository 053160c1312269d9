/** How Pods may run; `auto` is containers where they can be had, and otherwise processes. */
export const sandboxKinds = ["auto", "process", "oci"] as const;
export type SandboxKind = (typeof sandboxKinds)[number];
