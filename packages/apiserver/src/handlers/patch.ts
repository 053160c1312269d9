import { copyOf } from "../json-copy.ts";
import { StatusError, timestamp, type UnknownObject } from "@spry/kube";
import { applySteps, inconvertible, untypable } from "../apply/managed-fields.ts";
import { type Writer } from "../apply/managers.ts";
import { typedProblem } from "../apply/typed-problem.ts";
import { fieldsOf } from "../apply/typed-value.ts";
import { type FieldSet } from "../apply/field-set.ts";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, invalidObject, invalidOptions, notFound } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { scanJson } from "../http/json-scanner.ts";
import { parseDocument, parseObject, type Wording } from "../http/request-body.ts";
import { checkConvertible, goText } from "../patch/go-conversion.ts";
import { patched, type PatchKind } from "../patch/patch.ts";
import { scaleType } from "../resources/body-types.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { DecodingError } from "../schema/decoding.ts";
import {
  checkFields,
  dropUnknownFields,
  type FieldValidation,
} from "../schema/field-validation.ts";
import { scalePart } from "./scale.ts";
import { inTurns, isLarge, turn } from "../turns.ts";
import { createObject, placeOf, updateObject } from "./write.ts";

/** The object after a patch; `created` when server-side apply made it. */
export interface PatchOutcome {
  object: UnknownObject;
  created: boolean;
}

export async function patchObject(
  engine: Engine,
  request: ResourceRequest,
  kind: PatchKind,
  body: string,
): Promise<PatchOutcome> {
  if (kind === "apply") return applyPatch(engine, request, body);
  if (request.query.has("force")) throw forceOnlyForApply();
  if (!engine.store.get(placeOf(request))) throw notFound(request.type, request.name);
  request.large ||= isLarge(body);
  if (request.large) await turn();
  const modify = modification(request, kind, body, request.type);
  const object = await updateObject(engine, request, { modify, subresource: request.subresource });
  return { object, created: false };
}

/**
 * Computes an object of `type` after a patch; unknown fields become warnings of the request. Throws a `StatusError`
 * 400 for an invalid patch; the returned function throws one of 422 for a patch that does not fit the object.
 */
export function modification(
  request: ResourceRequest,
  kind: Exclude<PatchKind, "apply">,
  body: string,
  type: ResourceType,
): (current: UnknownObject) => UnknownObject {
  const patch = readPatch(body, kind);
  const mode = (request.query.get("fieldValidation") || "Warn") as FieldValidation;
  const found = mode === "Ignore" ? [] : scanJson(body).duplicates;
  const duplicates = found.map((path) => (kind === "json" ? `json patch ${path}` : path));
  return (current) => {
    const next = patched(current, patch, kind, type);
    // A strategic merge patch shows the patch, the others the object that they make, unless that is large.
    const made = kind === "strategic" || request.large ? undefined : JSON.stringify(next);
    try {
      if (kind === "strategic") checkConvertible(next, type.schema);
      request.warnings.push(...checkFields(type, next, mode, duplicates));
    } catch (error) {
      if (!(error instanceof DecodingError)) throw error;
      const shown = made ?? goText(patch);
      const message = (kind !== "strategic" && problemInOrder(type, next)) || error.message;
      throw invalidObject("", "", "", (errors) => errors.invalid("patch", shown, message));
    }
    next.metadata ??= {};
    return next;
  };
}

/** Of several values that do not fit, Kubernetes reports the first by the order of keys: its patches sort them. */
function problemInOrder(type: ResourceType, object: UnknownObject): string | undefined {
  try {
    dropUnknownFields(type, withSortedKeys(object) as UnknownObject);
  } catch (error) {
    if (error instanceof DecodingError) return error.message;
    throw error;
  }
  return undefined;
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, withSortedKeys(each)]));
}

function readPatch(body: string, kind: Exclude<PatchKind, "apply">): unknown {
  const wording: Wording = (problem) =>
    kind === "strategic" ? problem : `error decoding patch: ${problem}`;
  const patch = parseDocument(body, "application/json", wording);
  const isList = Array.isArray(patch);
  if (patch === null && kind === "merge") throw badRequest("Invalid JSON Patch");
  if (patch === null) return kind === "json" ? [] : {};
  if (kind === "json" ? isList : typeof patch === "object" && !isList) return patch;
  const found = isList ? "array" : typeof patch === "boolean" ? "bool" : typeof patch;
  const wanted = kind === "json" ? "[]handlers.jsonPatchOp" : "map[string]interface {}";
  throw badRequest(
    wording(`json: cannot unmarshal ${found} into Go value of type ${wanted}`, body),
  );
}

/** Server-side apply, of a Scale too where that is the request's subresource. */
export async function applyPatch(
  engine: Engine,
  request: ResourceRequest,
  body: string,
): Promise<PatchOutcome> {
  const { type, query, subresource } = request;
  const wording: Wording = (problem) =>
    problem.startsWith("yaml")
      ? `error decoding YAML: error converting YAML to JSON: ${problem}`
      : `error decoding YAML: error unmarshaling JSON: while decoding JSON: ${problem.replace(/ of type struct .*/, " of type map[string]interface {}")}`;
  request.large ||= isLarge(body);
  if (request.large) await turn();
  const sent = parseObject(body, "application/apply-patch+yaml", wording) as UnknownObject;
  const given = { ...sent, metadata: { name: request.name, ...sent.metadata } };
  const sentType = subresource === "scale" ? scaleType : type;
  checkApplied(request, sent, sentType);
  if (request.large) await turn();
  const problem = typedProblem(sent, sentType.schema);
  if (problem !== undefined) throw untypable(given, problem);
  try {
    if (!sentType.custom) checkConvertible(sent, sentType.schema);
    dropUnknownFields(sentType, sent);
  } catch (error) {
    if (!(error instanceof DecodingError)) throw error;
    throw inconvertible(given, error.message);
  }
  const applied = subresource === "scale" ? scalePart(type, sent) : sent;
  const force = query.get("force") === "true";
  const writer: Writer = {
    manager: request.manager,
    apiVersion: groupVersionOf(type),
    subresource: subresource || undefined,
    now: timestamp(engine.clock),
  };
  const ignored = ignoredFields(request, applied);
  const lay = async (live: UnknownObject | undefined) => {
    const steps = applySteps(live, copyOf(applied), type.schema, writer, { force, ignored });
    const next = await inTurns(steps, request.large === true);
    next.object.metadata.managedFields = next.managedFields;
    return next.object;
  };
  if (!engine.store.get(placeOf(request))) {
    if (subresource) throw notFound(type, request.name);
    if (applied.metadata.uid) {
      throw new StatusError({
        code: 409,
        message:
          "uid mismatch: the provided object specified a uid, but no object exists by that name",
      });
    }
    // What an apply makes has no version to be compared with.
    delete applied.metadata.resourceVersion;
    const object = await createObject(engine, request, await lay(undefined), { tracked: true });
    return { object, created: true };
  }
  const object = await updateObject(engine, request, { modify: lay, tracked: true, subresource });
  return { object, created: false };
}

function checkApplied(
  { name, namespace, query }: ResourceRequest,
  applied: UnknownObject,
  type: ResourceType,
): void {
  if (!query.get("fieldManager")) {
    const errors = new FieldErrors();
    errors.required("fieldManager", "is required for apply patch");
    errors.throwIfAny("PatchOptions", "meta.k8s.io", "");
  }
  const apiVersion = textOf(applied.apiVersion);
  const kind = textOf(applied.kind);
  if (apiVersion !== groupVersionOf(type) || kind !== type.kind) {
    const groupVersion =
      apiVersion.includes("/") || !apiVersion ? apiVersion || "/" : `/${apiVersion}`;
    throw badRequest(`invalid object type: ${groupVersion}, Kind=${kind}`);
  }
  applied.metadata ??= {};
  const metadata: unknown = applied.metadata;
  if (typeof metadata !== "object" || Array.isArray(metadata)) {
    const problem = `.metadata: expected map, got &{${JSON.stringify(metadata)}}`;
    throw untypable({ ...applied, metadata: { name } }, problem);
  }
  if (applied.metadata.managedFields) {
    throw badRequest("metadata.managedFields must be nil");
  }
  delete applied.metadata.managedFields;
  // A name that is not a string is reported together with all that does not fit the schema.
  if (textOf((applied.metadata.name ??= name), name) !== name) {
    throw badRequest(
      `the name of the object (${applied.metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if (
    type.namespaced &&
    textOf((applied.metadata.namespace ??= namespace), namespace) !== namespace
  ) {
    throw badRequest(
      `the namespace of the object (${applied.metadata.namespace}) does not match the namespace on the URL (${namespace})`,
    );
  }
}

/** The schema has not been looked at yet: anything may stand where a text is due. */
function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

/** What the endpoint does not write cannot be owned through it either. */
function ignoredFields({ type, subresource }: ResourceRequest, applied: UnknownObject): FieldSet {
  if (subresource === "status") {
    const all = fieldsOf(applied, type.schema);
    return Object.fromEntries(
      Object.keys(all)
        .filter(
          (element) => element !== "f:status" && element !== "f:apiVersion" && element !== "f:kind",
        )
        .map((element) => [element, {}]),
    );
  }
  return type.hasStatus && subresource !== "scale" ? { "f:status": {} } : {};
}

function forceOnlyForApply(): StatusError {
  return invalidOptions("PatchOptions", (errors) =>
    errors.forbidden("force", "may not be specified for non-apply patch"),
  );
}
