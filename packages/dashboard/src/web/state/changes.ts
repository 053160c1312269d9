/** What a user has changed in a Function, and what others have changed meanwhile. */
import { type Function, type FunctionSpec, labelPrefix } from "@spry/function/browser";
import { specShape } from "../api/object-shapes.ts";
import { deepEqual } from "@spry/kube/browser";

/** The part of a Function that users set. */
export interface Desired {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: FunctionSpec;
}

/** Of what is stored of it. */
export const desiredShape = {
  "metadata!": { "labels!": { "*": "text" }, "annotations!": { "*": "text" } },
  "spec!": specShape,
} as const;

/** Written by programs, not by users. */
const isForeign = (key: string): boolean =>
  key === "kubectl.kubernetes.io/last-applied-configuration" ||
  key === `${labelPrefix}last-modifier`;

export function desiredOf({ metadata, spec }: Pick<Function, "metadata" | "spec">): Desired {
  const { labels = {}, annotations = {} } = metadata;
  const own = Object.entries(annotations).filter(([key]) => !isForeign(key));
  return { metadata: { labels, annotations: Object.fromEntries(own) }, spec };
}

export const isChanged = (base: Desired, edited: Desired): boolean => !deepEqual(base, edited);
