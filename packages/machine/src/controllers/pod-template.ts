import { createHash } from "node:crypto";
import {
  controllerRef,
  type KubeObject,
  type Pod,
  type PodTemplateSpec,
  type Resource,
} from "@spry/kube";

/** Characters that make no words and are not taken for each other (`apimachinery/pkg/util/rand`). */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
/** A Pod of the template, managed by its owner; the API server completes its name. */
export function podFromTemplate(
  template: PodTemplateSpec | undefined,
  resource: Resource,
  owner: KubeObject,
): Pod {
  const { namespace, name } = owner.metadata;
  const { labels, annotations, finalizers } = template?.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName: `${name}-`,
      ...(namespace ? { namespace } : {}),
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers } : {}),
      ownerReferences: [controllerRef(resource, owner)],
    },
    ...(template?.spec ? { spec: template.spec } : {}),
  };
}

/** A short name for a value: equal JSON values, however their keys are ordered, have equal names. */
export function hashName(value: unknown, length = 10): string {
  const bytes = createHash("sha256").update(canonicalJson(value)).digest();
  return Array.from({ length }, (_, i) => alphabet[(bytes[i] ?? 0) % alphabet.length]).join("");
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
