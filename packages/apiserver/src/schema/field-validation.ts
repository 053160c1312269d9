import { type UnknownObject } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { Decoding, DecodingError } from "./decoding.ts";
import { objectMetaSchema } from "./schema.ts";
import { prune } from "./structural.ts";

/** What to do about fields that the schema does not know (`?fieldValidation=`). */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

const maxReported = 64;

/**
 * Drops fields that are not known, in place. Returns the warnings for the client: those fields, and the `duplicates`
 * that were found while reading. Throws a `DecodingError` for a value of a wrong type and, under `Strict`, for such fields.
 */
export function checkFields(
  type: ResourceType,
  object: UnknownObject,
  mode: FieldValidation,
  duplicates: string[] = [],
): string[] {
  const unknown = dropUnknownFields(type, object);
  if (mode === "Ignore") return [];
  const texts = [
    ...duplicates.map((path) => `duplicate field "${path}"`),
    ...unknown.map((path) => `unknown field "${path}"`),
  ].slice(0, maxReported);
  if (mode === "Warn" || texts.length === 0) return texts;
  throw new DecodingError(`strict decoding error: ${texts.join(", ")}`);
}

/** The same for what is answered and not stored: all that is wrong is a `StatusError` 400. */
export function checkBody(type: ResourceType, body: object, query: URLSearchParams): string[] {
  const mode = (query.get("fieldValidation") || "Warn") as FieldValidation;
  try {
    return checkFields(type, body as UnknownObject, mode);
  } catch (error) {
    if (!(error instanceof DecodingError)) throw error;
    const { kind, version } = type;
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: ${error.message}`,
    );
  }
}

/** The same without a judgement: the paths of what was dropped. */
export function dropUnknownFields(type: ResourceType, object: UnknownObject): string[] {
  return type.custom ? unknownCustomFields(type, object) : unknownBuiltinFields(type, object);
}

/** The schema of the kind comes later, with defaults; here only metadata must be well-formed. */
function unknownCustomFields(type: ResourceType, object: UnknownObject): string[] {
  const decoding = new Decoding();
  const place = { path: "metadata", goPath: "", struct: "ObjectMeta", goType: "" };
  decoding.decode(object.metadata, objectMetaSchema, place);
  if (!type.custom || type.custom.preserveUnknownFields) return decoding.unknown;
  return [...decoding.unknown, ...prune(object, type.custom.openApiSchema)].sort();
}

function unknownBuiltinFields(type: ResourceType, object: UnknownObject): string[] {
  const decoding = new Decoding();
  decoding.decode(object, type.schema, { path: "", goPath: "", struct: type.kind, goType: "" });
  return decoding.unknown;
}
