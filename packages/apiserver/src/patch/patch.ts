import { copyOf } from "../json-copy.ts";
import { applyMergePatch, StatusError, type UnknownObject } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { checkShape } from "../http/request-body.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { applyJsonPatch, maxPatchOperations } from "./json-patch.ts";
import { applyStrategicMergePatch } from "./strategic-merge.ts";

export type PatchKind = "json" | "merge" | "strategic" | "apply";

const kindOfMediaType: Record<string, PatchKind> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

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
  if (patch.length > maxPatchOperations) {
    throw new StatusError({
      code: 413,
      message: `The allowed maximum operations in a JSON patch is ${maxPatchOperations}, got ${patch.length}`,
    });
  }
  let result: unknown;
  try {
    result = applyJsonPatch(object, patch);
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
  // Moves can nest deeper than a body may.
  checkShape(result);
  return result as UnknownObject;
}
