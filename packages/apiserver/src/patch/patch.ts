import { copyOf } from "../json-copy.ts";
import { applyMergePatch, StatusError, type UnknownObject } from "@spry/kube";
import jsonPatch from "fast-json-patch";
import { badRequest } from "../errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { applyStrategicMergePatch } from "./strategic-merge.ts";

export type PatchKind = "json" | "merge" | "strategic" | "apply";

const kindOfMediaType: Record<string, PatchKind> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** More operations than a person or tool writes; each may copy a large part of the object. */
const maxOperations = 10_000;

/** Which patch a request carries; throws a `StatusError` 415 for what this resource cannot take. */
export function patchKindOf(mediaType: string, type: ResourceType): PatchKind {
  const kind = kindOfMediaType[mediaType];
  // Merge keys are known of built-in kinds only.
  if (kind && !(kind === "strategic" && type.custom)) return kind;
  if (!kind)
    throw new StatusError({ code: 415, message: "415: Unsupported Media Type", details: {} });
  const accepted = Object.keys(kindOfMediaType).filter(
    (each) => kindOfMediaType[each] !== "strategic",
  );
  throw new StatusError({
    code: 415,
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  });
}

/** The object with the patch applied; neither is changed. Not for server-side apply. */
export function patched(
  object: UnknownObject,
  patch: unknown,
  kind: Exclude<PatchKind, "apply">,
  type: ResourceType,
): UnknownObject {
  if (kind === "json") return jsonPatched(object, patch);
  const result =
    kind === "merge"
      ? applyMergePatch(object, patch)
      : applyStrategicMergePatch(object, patch as Record<string, unknown>, type.schema);
  return copyOf(result) as UnknownObject;
}

function jsonPatched(object: UnknownObject, patch: unknown): UnknownObject {
  if (!Array.isArray(patch)) throw badRequest("a JSON patch must be a list of operations");
  if (patch.length > maxOperations) {
    throw new StatusError({
      code: 413,
      message: `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patch.length}`,
    });
  }
  try {
    const copy = copyOf(object);
    // The operations are validated, and a prototype cannot be reached by a path.
    return (patch as jsonPatch.Operation[]).reduce(applied, copy);
  } catch (cause) {
    throw new StatusError(
      {
        code: 422,
        message: "the server rejected our request due to an error in our request",
        details: {},
      },
      { cause },
    );
  }
}

/** A replacement of a field that is not there adds it, as Kubernetes' library does. */
function applied(document: UnknownObject, operation: jsonPatch.Operation): UnknownObject {
  let next = operation;
  if (operation.op === "replace" && typeof operation.path === "string" && operation.path !== "") {
    const owner = operation.path.slice(0, operation.path.lastIndexOf("/"));
    const parent: unknown = jsonPatch.getValueByPointer(document, owner);
    if (typeof parent === "object" && !Array.isArray(parent)) next = { ...operation, op: "add" };
  }
  return jsonPatch.applyPatch(document, [next], true, true, true).newDocument;
}
