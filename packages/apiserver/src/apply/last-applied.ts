import { type UnknownObject } from "@spry/kube";
import { maxAnnotationBytes } from "../resources/metadata.ts";
import { type Schema } from "../schema/schema.ts";
import { compare } from "./comparison.ts";
import { difference, type FieldSet, union } from "./field-set.ts";
import { fieldsOf } from "./typed-value.ts";
import { parseJson } from "../json.ts";

/** Where `kubectl apply` without `--server-side` keeps what it applied, as JSON. */
const annotation = "kubectl.kubernetes.io/last-applied-configuration";

/** The name under which `kubectl apply --server-side` writes unless it is given another. */
export const kubectlManager = "kubectl";

/**
 * The fields that a client-side apply set and that still have the values it gave: kubectl may take them over by
 * server-side apply without a conflict, for they are its own (`managedfields/internal/lastappliedmanager.go`). None when
 * the annotation is missing, damaged or of another version.
 */
export function fieldsLastApplied(
  live: UnknownObject,
  schema: Schema,
  apiVersion: string,
): FieldSet {
  const text = live.metadata.annotations?.[annotation];
  if (!text) return {};
  try {
    const applied = parseJson(text) as UnknownObject;
    if (applied.apiVersion !== apiVersion) return {};
    const { added, modified, removed } = compare(applied, live, schema);
    return difference(fieldsOf(applied, schema, ""), union(union(added, modified), removed));
  } catch {
    // Any client may have written the annotation; if it cannot be read, it owns nothing.
    return {};
  }
}

/**
 * Brings the annotation, where there is one, up to what kubectl has applied now, in place, so that a later client-side
 * apply starts from it (`managedfields/internal/lastappliedupdater.go`). Left out when it gets too large.
 */
export function renewLastApplied(object: UnknownObject, applied: UnknownObject): void {
  const { annotations } = object.metadata;
  if (!annotations?.[annotation]) return;
  const { [annotation]: _, ...others } = applied.metadata.annotations ?? {};
  const metadata = { ...applied.metadata };
  if (applied.metadata.annotations) metadata.annotations = others;
  annotations[annotation] = `${JSON.stringify(inOrder({ ...applied, metadata }))}\n`;
  const size = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  if (size > maxAnnotationBytes) delete annotations[annotation];
}

/** With the keys of objects sorted, as Go writes maps. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, inOrder(each)]));
}
