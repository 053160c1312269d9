import { type UnknownObject } from "@spry/kube";
import { internalError, ownMessageOf } from "../../errors.ts";
import { applyJsonPatch, maxPatchOperations } from "../../patch/json-patch.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { completed } from "../../schema/complete-object.ts";
import { dropUnknownFields } from "../../schema/field-validation.ts";
import { type AdmissionResponse } from "./review.ts";
import { parseJson } from "../../json.ts";

/**
 * The object as the JSON patch in a webhook's answer leaves it, with defaults. A patch that is none is
 * the webhook's failure (an Error); one that does not apply is an internal error (a `StatusError`).
 */
export function patchedByWebhook(
  type: ResourceType,
  object: UnknownObject,
  { patch = "", patchType }: AdmissionResponse,
): UnknownObject {
  if (patchType !== "JSONPatch")
    throw new Error(`unsupported patch type ${JSON.stringify(patchType)}`);
  const operations = operationsOf(patch);
  if (operations.length === 0) return object;
  let patched: UnknownObject;
  try {
    patched = applyJsonPatch(object, operations) as UnknownObject;
  } catch (cause) {
    throw internalError(ownMessageOf(cause), { cause });
  }
  try {
    dropUnknownFields(type, patched);
  } catch (cause) {
    throw internalError(ownMessageOf(cause).replace(/^.* cannot be handled as a \w+: /, ""), {
      cause,
    });
  }
  return completed(type, patched);
}

function operationsOf(patch: string): unknown[] {
  try {
    const operations = parseJson(Buffer.from(patch, "base64").toString());
    // Go reads null as a list of nothing.
    if (operations === null) return [];
    if (!Array.isArray(operations)) throw new Error("a JSON patch must be a list of operations");
    if (operations.length > maxPatchOperations) {
      throw new Error(`a JSON patch may have at most ${maxPatchOperations} operations`);
    }
    return operations;
  } catch (cause) {
    const problem = ownMessageOf(cause).split("\n")[0];
    throw new Error(`received undecodable patch in webhook response: ${problem}`, { cause });
  }
}
