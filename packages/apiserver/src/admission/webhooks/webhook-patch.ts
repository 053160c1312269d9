import { type UnknownObject } from "@spry/kube";
import jsonPatch from "fast-json-patch";
import { internalError, ownMessageOf } from "../../errors.ts";
import { copyOf } from "../../json-copy.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { completed } from "../../schema/complete-object.ts";
import { dropUnknownFields } from "../../schema/field-validation.ts";
import { type AdmissionResponse } from "./review.ts";

/** The operations that one answer may carry; each may copy a large part of the object. */
const maxOperations = 10_000;

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
    patched = operations.reduce(appliedTo, copyOf(object));
  } catch (cause) {
    throw internalError(problemOf(cause), { cause });
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

function operationsOf(patch: string): jsonPatch.Operation[] {
  try {
    const operations = JSON.parse(Buffer.from(patch, "base64").toString()) as unknown;
    if (!Array.isArray(operations)) throw new Error("a JSON patch must be a list of operations");
    if (operations.length > maxOperations) {
      throw new Error(`a JSON patch may have at most ${maxOperations} operations`);
    }
    return operations as jsonPatch.Operation[];
  } catch (cause) {
    const problem = ownMessageOf(cause).split("\n")[0];
    throw new Error(`received undecodable patch in webhook response: ${problem}`, { cause });
  }
}

/** The operations are validated, and a prototype cannot be reached by a path. */
function appliedTo(document: UnknownObject, operation: jsonPatch.Operation): UnknownObject {
  const isNewMember = operation.op === "replace" && isAbsentMember(document, operation.path);
  const applied = isNewMember ? { ...operation, op: "add" as const } : operation;
  return jsonPatch.applyPatch(document, [applied], true, true, true).newDocument;
}

/** The original lets a replacement also add a member of an object. */
function isAbsentMember(document: UnknownObject, path: string): boolean {
  const parent = path.slice(0, path.lastIndexOf("/"));
  try {
    const value: unknown = jsonPatch.getValueByPointer(document, parent);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    return jsonPatch.getValueByPointer(document, path) === undefined;
  } catch {
    return false;
  }
}

/** As `gopkg.in/evanphx/json-patch` words the common ones. */
function problemOf(cause: unknown): string {
  const { name, operation, message } = cause as jsonPatch.JsonPatchError;
  const { op = "", path = "" } = (operation ?? {}) as { op?: string; path?: string };
  switch (name as string) {
    case "TEST_OPERATION_FAILED":
      return `testing value ${path} failed: test failed`;
    case "OPERATION_PATH_UNRESOLVABLE":
      if (op === "remove") {
        return `error in remove for path: '${path}': Unable to remove nonexistent key: ${path.split("/").at(-1)}: missing value`;
      }
      return `${op} operation does not apply: doc is missing key: ${path}: missing value`;
    case "OPERATION_PATH_CANNOT_ADD":
      return `add operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`;
  }
  return message.split("\n")[0] ?? "";
}
