import { type FieldError, type Function, functions, specShapeErrors } from "@spry/function/browser";
import { apiVersionOf, messageOf } from "@spry/kube/browser";
import { dumpYaml, loadYaml } from "@spry/kube/yaml";
import { type Desired } from "./changes.ts";
import { plainProblem } from "./plain-data.ts";

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

/** The content of the YAML, or what is wrong with it and where. With `own`, it must be of this object. */
export function readYaml(text: string, own?: { name: string; namespace: string }): ReadYaml {
  let value: unknown;
  try {
    value = loadYaml(text);
  } catch (error) {
    const { reason, mark } = error as { reason?: string; mark?: { line: number } };
    return { problem: reason ?? messageOf(error), line: (mark?.line ?? 0) + 1 };
  }
  const unusable = plainProblem(value);
  if (unusable !== undefined) return { problem: unusable, line: 1 };
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { problem: "this is not an object", line: 1 };
  const { apiVersion, kind, metadata, spec } = value as Partial<Function>;
  const problemAt = ({ path, message }: FieldError) => ({
    problem: message,
    line: lineOfPath(text, path),
  });
  if (kind !== functions.kind || apiVersion !== apiVersionOf(functions))
    return problemAt({
      path: "kind",
      message: `this must be a Function of ${apiVersionOf(functions)}`,
    });
  const [wrong] = [...metadataErrors(metadata ?? {}), ...specShapeErrors(spec)];
  if (wrong || spec === undefined)
    return problemAt(wrong ?? { path: "spec", message: "spec is required" });
  for (const field of ["name", "namespace"] as const) {
    if (own === undefined || (metadata?.[field] ?? own[field]) === own[field]) continue;
    const message = `metadata.${field} of an object cannot be changed: it is ${own[field]}`;
    return problemAt({ path: `metadata.${field}`, message });
  }
  return {
    desired: {
      metadata: { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {} },
      spec,
    },
    name: metadata?.name,
    namespace: metadata?.namespace,
  };
}

/** What is wrong with the fields of `metadata` that users set. */
function metadataErrors(metadata: unknown): FieldError[] {
  const wrong = (path: string, message: string) => [{ path, message: `${path} ${message}` }];
  if (!isMap(metadata)) return wrong("metadata", "must be a map with name and namespace");
  const texts = ["name", "namespace"].filter(
    (field) => metadata[field] !== undefined && typeof metadata[field] !== "string",
  );
  const maps = ["labels", "annotations"].flatMap((field) => {
    const map = metadata[field] ?? {};
    const path = `metadata.${field}`;
    if (!isMap(map)) return wrong(path, "must be a map of texts");
    const odd = Object.keys(map).find((key) => typeof map[key] !== "string");
    return odd === undefined ? [] : wrong(`${path}.${odd}`, "must be a text: put it into quotes");
  });
  return [...texts.flatMap((field) => wrong(`metadata.${field}`, "must be a text")), ...maps];
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The line of a path such as `spec.env[1].name`: of the deepest part of it that is found in the text. */
function lineOfPath(text: string, path: string): number {
  const lines = text.split("\n");
  let at = 0;
  for (const [part] of path.matchAll(/\[[^\]]*\]|[^.[\]]+/g)) {
    const index = /^\[(\d+)\]$/.exec(part)?.[1];
    const next =
      index === undefined ? keyAfter(lines, at, part) : itemAfter(lines, at, Number(index));
    if (next < 0) break;
    at = next;
  }
  return at + 1;
}

/** The next line with this key. */
function keyAfter(lines: string[], from: number, part: string): number {
  const key = part.replace(/^\[|\]$/g, "");
  return lines.findIndex((line, at) => {
    const rest = line
      .trimStart()
      .replace(/^(?:- +)+/, "")
      .replace(/^["']/, "");
    return at >= from && rest.startsWith(key) && /^["']?\s*:/.test(rest.slice(key.length));
  });
}

function itemAfter(lines: string[], from: number, index: number): number {
  const first = lines.findIndex((line, at) => at > from && /^\s*-(?: |$)/.test(line));
  if (first < 0) return -1;
  const dash = (line: string) => line.length - line.trimStart().length;
  const indent = dash(lines[first] ?? "");
  const items = lines.flatMap((line, at) =>
    at >= first && /^\s*-(?: |$)/.test(line) && dash(line) === indent ? [at] : [],
  );
  return items[index] ?? -1;
}
