import { type UnknownObject } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { Decoding } from "./decoding.ts";
import { objectMetaSchema } from "./schema.ts";
import { prune } from "./structural.ts";

/** What to do about fields that the schema does not know (`?fieldValidation=`). */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

const maxReported = 64;

/**
 * Drops fields that are not known, and refuses values of a wrong type, in place. Returns the warnings
 * for the client; under `Strict` throws a `StatusError` 400 instead.
 */
export function checkFields(
  type: ResourceType,
  object: UnknownObject,
  mode: FieldValidation,
): string[] {
  const unknown = dropUnknownFields(type, object);
  if (unknown.length === 0 || mode === "Ignore") return [];
  const texts = unknown.slice(0, maxReported).map((path) => `unknown field "${path}"`);
  if (mode === "Warn") return texts;
  throw badRequest(
    `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${texts.join(", ")}`,
  );
}

/** The same without a judgement: the paths of what was dropped. */
export function dropUnknownFields(type: ResourceType, object: UnknownObject): string[] {
  return type.custom ? unknownCustomFields(type, object) : unknownBuiltinFields(type, object);
}

/** The schema of the kind comes later, with defaults; here only metadata must be well-formed. */
function unknownCustomFields(type: ResourceType, object: UnknownObject): string[] {
  const decoding = new Decoding(type);
  const place = { path: "metadata", goPath: ".metadata", struct: "ObjectMeta" };
  decoding.decode(object.metadata, objectMetaSchema, place);
  if (!type.custom || type.custom.preserveUnknownFields) return decoding.unknown;
  return [...decoding.unknown, ...prune(object, type.custom.openApiSchema)].sort();
}

function unknownBuiltinFields(type: ResourceType, object: UnknownObject): string[] {
  const decoding = new Decoding(type);
  decoding.decode(object, type.schema, { path: "", goPath: "", struct: type.kind });
  return decoding.unknown;
}
