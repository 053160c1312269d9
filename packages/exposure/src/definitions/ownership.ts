import { type ObjectMeta } from "@spry/kube";

/** On the definitions that we have created: without it, a definition belongs to another installation. */
export const ourLabels = { "app.kubernetes.io/managed-by": "spry" };

export function isOurs({ metadata }: { metadata: ObjectMeta }): boolean {
  return metadata.labels?.["app.kubernetes.io/managed-by"] === "spry";
}
