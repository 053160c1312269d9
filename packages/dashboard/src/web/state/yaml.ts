import { type Function, functions } from "@spry/function/browser";
import { apiVersionOf, messageOf } from "@spry/kube/browser";
import { dumpYaml, loadYaml } from "@spry/kube/yaml";
import { type Desired } from "./changes.ts";

/** In the form that `kubectl apply` accepts. */
export function yamlOf(name: { name: string; namespace: string }, desired: Desired): string {
  const { labels, annotations } = desired.metadata;
  return dumpYaml({
    apiVersion: apiVersionOf(functions),
    kind: functions.kind,
    metadata: {
      ...name,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: desired.spec,
  });
}

export type ReadYaml =
  | { desired: Desired; name: string | undefined; namespace: string | undefined }
  | { problem: string; line: number };

/** The content of the YAML, or what is wrong with it and where. */
export function readYaml(text: string): ReadYaml {
  let value: unknown;
  try {
    value = loadYaml(text);
  } catch (error) {
    const { reason, mark } = error as { reason?: string; mark?: { line: number } };
    return { problem: reason ?? messageOf(error), line: (mark?.line ?? 0) + 1 };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { problem: "this is not an object", line: 1 };
  const { apiVersion, kind, metadata, spec } = value as Partial<Function>;
  const lineOf = (word: string) => text.split("\n").findIndex((each) => each.startsWith(word)) + 1;
  if (kind !== functions.kind || apiVersion !== apiVersionOf(functions))
    return {
      problem: `this must be a Function of ${apiVersionOf(functions)}`,
      line: lineOf("kind"),
    };
  if (typeof spec !== "object" || spec === null || typeof spec.source !== "object")
    return { problem: "spec.source is missing", line: lineOf("spec") || 1 };
  return {
    desired: {
      metadata: { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {} },
      spec,
    },
    name: metadata?.name,
    namespace: metadata?.namespace,
  };
}
