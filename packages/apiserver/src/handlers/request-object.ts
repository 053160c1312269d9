import { type StatusError, type UnknownObject } from "@spry/kube";
import { type ResourceRequest } from "../request.ts";
import { badRequest, invalidObject, invalidOptions } from "../errors.ts";
import { type HttpRequest } from "../http/message.ts";
import { readBody, type Wording } from "../http/request-body.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { DecodingError } from "../schema/decoding.ts";
import { checkFields, type FieldValidation } from "../schema/field-validation.ts";
import { turn } from "../turns.ts";
import { type DeleteOptions, deleteOptionsOf } from "./delete.ts";

/**
 * The object in a request's body: typed, without fields that its kind does not have; remarks about those become the
 * request's warnings. `type` is another than the request's for bodies of subresources (`Scale`, `Binding`), `older`
 * an apiVersion in which they are still accepted. Throws a `StatusError` 400 for a body that is not such an object.
 */
export async function bodyObject(
  request: ResourceRequest,
  http: HttpRequest,
  type: ResourceType = request.type,
  older?: string,
): Promise<UnknownObject> {
  const { object, duplicates, large } = await readBody(http, unrecognized(type));
  if (large) {
    request.large = true;
    await turn();
  }
  if (!object) throw badRequest(unrecognized(type)("unexpected end of JSON input", ""));
  const typed = object as unknown as UnknownObject;
  if (older !== undefined && typed.apiVersion === older) typed.apiVersion = groupVersionOf(type);
  checkType(type, typed);
  const mode = (request.query.get("fieldValidation") || "Warn") as FieldValidation;
  try {
    request.warnings.push(...checkFields(type, typed, mode, duplicates));
  } catch (error) {
    if (!(error instanceof DecodingError)) throw error;
    throw unhandled(type, typed, error.message);
  }
  typed.metadata ??= {};
  return typed;
}

/** In the words of Go's `encoding/json`. */
function notText(object: UnknownObject, field: "kind" | "apiVersion"): [string, string] {
  const value: unknown = object[field];
  const found = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  return [
    `json: cannot unmarshal ${found} into Go struct field .${field} of type string`,
    JSON.stringify(object),
  ];
}

/** What is said of a body that is not recognised as an object of any kind. */
function unrecognized({ kind, version }: ResourceType): Wording {
  return (problem, text) => {
    if (oversized.test(problem))
      return `${kind} in version "${version}" cannot be handled as a ${kind}: ${problem}`;
    const reported = /^(?:yaml|json: unsupported value)/.test(problem)
      ? problem
      : `couldn't get version/kind; json parse error: ${problem}`;
    return `the object provided is unrecognized (must be of type ${kind}): ${reported} (${summaryOf(text)})`;
  };
}

const oversized = /^json: cannot unmarshal number \S+ into Go value of type float64$/;
const maxSummary = 30;

function summaryOf(text: string): string {
  if (text === "") return "<empty>";
  const bytes = Buffer.from(text);
  const start = bytes.subarray(0, maxSummary);
  const shown = text.startsWith("{") ? start.toString() : start.toString("hex");
  return bytes.length > maxSummary ? `${shown} ...` : shown;
}

function unhandled(type: ResourceType, object: UnknownObject, problem: string): StatusError {
  const version = object.apiVersion?.split("/").at(-1);
  return badRequest(
    `${object.kind} in version "${version}" cannot be handled as a ${type.kind}: ${problem}`,
  );
}

function checkType(type: ResourceType, object: UnknownObject): void {
  const wanted = groupVersionOf(type);
  for (const field of ["kind", "apiVersion"] as const) {
    if (object[field] === null) delete object[field];
    if (!["undefined", "string"].includes(typeof object[field]))
      throw badRequest(unrecognized(type)(...notText(object, field)));
    if (type.custom && !object[field]) throw typeMissing(type, object, field);
    object[field] ??= field === "kind" ? type.kind : wanted;
  }
  const { apiVersion = wanted, kind = type.kind } = object;
  if (apiVersion.split("/").length > 2) {
    const text = JSON.stringify(object);
    throw badRequest(
      `the object provided is unrecognized (must be of type ${type.kind}): unexpected GroupVersion string: ${apiVersion} (${summaryOf(text)})`,
    );
  }
  if (apiVersion === wanted && kind === type.kind) return;
  if (type.custom && apiVersion === wanted) {
    throw invalidObject(kind, type.group, object.metadata?.name ?? "", (errors) =>
      errors.invalid("kind", kind, `must be ${type.kind}`),
    );
  }
  if (apiVersion !== wanted && (type.custom || kind !== type.kind)) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${wanted})`,
    );
  }
  const problem =
    apiVersion === wanted
      ? `converting (${type.version}.${kind}) to (${internalGroup(type.group)}.${type.kind}): unknown conversion`
      : `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:111"`;
  throw unhandled(type, object, problem);
}

/** The package of a group's own types: `core`, `apps`, `networking`. */
function internalGroup(group: string): string {
  return group === "" ? "core" : (group.split(".")[0] ?? group);
}

function typeMissing(
  { kind }: ResourceType,
  object: UnknownObject,
  field: "kind" | "apiVersion",
): StatusError {
  const text = JSON.stringify(object);
  const name = field === "kind" ? "Kind" : "apiVersion";
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): Object '${name}' is missing in '${text}' (${summaryOf(text)})`,
  );
}

export async function requiredObject(http: HttpRequest): Promise<UnknownObject> {
  const { object } = await readBody(http);
  if (!object) throw badRequest("the request has no body");
  return object as unknown as UnknownObject;
}

/** `DeleteOptions` from the body and the query. */
export async function bodyOptions(
  request: ResourceRequest,
  http: HttpRequest,
): Promise<DeleteOptions> {
  const wording: Wording = (problem) => `couldn't get version/kind; json parse error: ${problem}`;
  const body = ((await readBody(http, wording)).object ?? {}) as DeleteOptions &
    Partial<UnknownObject>;
  checkOptionsKind(body);
  if (body.dryRun?.some((each) => each !== "All")) {
    throw invalidOptions("DeleteOptions", (errors) =>
      errors.unsupported("dryRun", body.dryRun, ["All"]),
    );
  }
  if (body.dryRun?.includes("All")) request.dryRun = true;
  return deleteOptionsOf(body, request.query);
}

function checkOptionsKind({ kind = "DeleteOptions", apiVersion = "v1" }: Partial<UnknownObject>) {
  if (kind === "DeleteOptions") return;
  const scheme = 'in scheme "pkg/runtime/scheme.go:111"';
  throw badRequest(`no kind "${kind}" is registered for version "${apiVersion}" ${scheme}`);
}
