import { copyOf } from "../json-copy.ts";
import { deepEqual, StatusError, type UnknownObject } from "@spry/kube";
import { requestToken } from "../authentication/token-request.ts";
import { type Engine, type ResourceRequest } from "../engine.ts";
import {
  badRequest,
  conflict,
  invalidObject,
  invalidOptions,
  methodNotAllowed,
  notFound,
  unknownPath,
} from "../errors.ts";
import { type HttpRequest, HttpResponse } from "../http/message.ts";
import { acceptedForm, mediaTypeOf } from "../http/negotiation.ts";
import { parseObject, readBody, readText, type Wording } from "../http/request-body.ts";
import { jsonResponse } from "../http/responses.ts";
import { patchKindOf } from "../patch/patch.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { DecodingError } from "../schema/decoding.ts";
import { checkFields, type FieldValidation } from "../schema/field-validation.ts";
import { type DeleteOptions, deleteCollection, deleteObject, deleteOptionsOf } from "./delete.ts";
import { isTrue } from "./list-options.ts";
import { patchObject } from "./patch.ts";
import { evictPod } from "./eviction.ts";
import { bindPod, podLog } from "./pod-subresources.ts";
import { presentationOf } from "./presentation.ts";
import { getObject, listObjects } from "./read.ts";
import { scaled, scaleOf } from "./scale.ts";
import { watchObjects } from "./watch.ts";
import { createObject, placeOf, updateObject } from "./write.ts";

/** Serves one request for a resource. */
export async function handleResource(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const { type, subresource } = request;
  const { custom } = type;
  if (custom?.deprecationWarning) request.warnings.push(custom.deprecationWarning);
  switch (subresource) {
    case "":
      return request.name
        ? handleObject(engine, request, http)
        : handleCollection(engine, request, http);
    case "status":
      if (!type.hasStatus) throw unknownPath();
      return handleStatus(engine, request, http);
    case "scale":
      if (!type.hasScale) throw unknownPath();
      return handleScale(engine, request, http);
  }
  if (type.collection === "/pods") return handlePod(engine, request, http);
  if (type.collection === "/serviceaccounts" && subresource === "token") {
    if (http.method !== "POST") throw methodNotAllowed();
    const token = await requestToken(engine, request, await requiredObject(http));
    return jsonResponse(token, 201, request.warnings);
  }
  if (type.collection === "/namespaces" && subresource === "finalize" && http.method === "PUT") {
    return replace(engine, request, http);
  }
  throw unknownPath();
}

async function handleCollection(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const presentation = presentationOf(request, acceptedForm(http, request.type));
  switch (http.method) {
    case "GET":
      if (isTrue(request.query, "watch")) return watchObjects(engine, request, presentation);
      return listObjects(engine, request, presentation);
    case "POST": {
      if (request.type.namespaced && !request.namespace) throw methodNotAllowed();
      const object = await bodyObject(request, http);
      request.name = object.metadata.name ?? "";
      const created = await createObject(engine, request, object);
      return jsonResponse(presentation.object(created), 201, request.warnings);
    }
    case "DELETE": {
      if (request.type.namespaced && !request.namespace) throw methodNotAllowed();
      const options = await bodyOptions(request, http);
      const deleted = await deleteCollection(engine, request, options);
      await engine.conversions.prepare(request.type, deleted);
      return new HttpResponse(
        presentation.list(deleted, { resourceVersion: String(engine.store.revision) }),
        {
          headers: { "content-type": "application/json" },
        },
      );
    }
  }
  throw methodNotAllowed();
}

async function handleObject(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const presentation = presentationOf(request, acceptedForm(http, request.type));
  switch (http.method) {
    case "GET":
      return getObject(engine, request, presentation);
    case "PUT":
      return replace(engine, request, http);
    case "PATCH":
      return patch(engine, request, http);
    case "DELETE": {
      const { object, gone } = await deleteObject(
        engine,
        request,
        await bodyOptions(request, http),
      );
      // Pods and what waits are told as objects, what is gone as a success (as a cluster does).
      if (!gone || returnsDeleted.has(request.type.collection)) {
        return jsonResponse(presentation.object(object), 200, request.warnings);
      }
      const { type, name } = request;
      const details = {
        name,
        ...(type.group && { group: type.group }),
        kind: type.plural,
        uid: object.metadata.uid,
      };
      return jsonResponse(
        { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details },
        200,
        request.warnings,
      );
    }
  }
  throw methodNotAllowed();
}

/** Collections whose objects are the answer to their deletion. */
const returnsDeleted = new Set([
  "/pods",
  "/services",
  "/serviceaccounts",
  "/persistentvolumeclaims",
  "/persistentvolumes",
  "/resourcequotas",
]);

async function handleStatus(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const presentation = presentationOf(request, acceptedForm(http, request.type));
  if (http.method === "GET") return getObject(engine, request, presentation);
  if (http.method === "PUT") return replace(engine, request, http);
  if (http.method === "PATCH") return patch(engine, request, http);
  throw methodNotAllowed();
}

async function replace(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const { type, subresource, namespace, name } = request;
  const presentation = presentationOf(request, acceptedForm(http, request.type));
  const object = await bodyObject(request, http);
  const { metadata } = object;
  if (type.namespaced && (metadata.namespace ??= namespace) !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(type, name);
  const { uid } = stored.object.metadata;
  if (metadata.name !== undefined && metadata.name !== name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if (metadata.uid && metadata.uid !== uid) {
    const key = `/registry/${type.custom ? `${type.group}/` : ""}${type.plural}/${[namespace, name].filter(Boolean).join("/")}`;
    throw conflict(
      type,
      name,
      `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
    );
  }
  const conditional = type.custom !== undefined || type.strategy.conditionalUpdate;
  if (conditional && !metadata.resourceVersion) throw missingVersion(request);
  const updated = await updateObject(engine, request, {
    modify: () => copyOf(object),
    subresource,
  });
  return jsonResponse(presentation.object(updated), 200, request.warnings);
}

async function patch(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const presentation = presentationOf(request, acceptedForm(http, request.type));
  const kind = patchKindOf(mediaTypeOf(http), request.type);
  const text = await readText(http);
  const { object, created } = await patchObject(engine, request, kind, text);
  return jsonResponse(presentation.object(object), created ? 201 : 200, request.warnings);
}

async function handleScale(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const { type } = request;
  if (http.method === "GET") {
    await engine.store.settled();
    const stored = engine.store.get(placeOf(request));
    if (!stored) throw notFound(type, request.name);
    return jsonResponse(scaleOf(type, stored.object));
  }
  const isPatch = http.method === "PATCH";
  if (!isPatch && http.method !== "PUT") throw methodNotAllowed();
  const body = isPatch
    ? (parseObject(await readText(http), "application/json") as UnknownObject)
    : await requiredObject(http);
  const { patched } = await import("../patch/patch.ts");
  const updated = await updateObject(engine, request, {
    subresource: "",
    modify(current) {
      if (!isPatch) return scaled(type, current, body);
      const scale = patched(scaleOf(type, current), body, "merge", type);
      return deepEqual(scale, scaleOf(type, current)) ? current : scaled(type, current, scale);
    },
  });
  return jsonResponse(scaleOf(type, updated), 200, request.warnings);
}

async function handlePod(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  if (request.subresource === "log" && http.method === "GET") return podLog(engine, request);
  if (podStreams.has(request.subresource) && ["GET", "POST"].includes(http.method))
    throw badRequest("Upgrade request required");
  if (http.method === "POST") {
    const body = await requiredObject(http);
    if (request.subresource === "binding")
      return jsonResponse(await bindPod(engine, request, body), 201);
    if (request.subresource === "eviction")
      return jsonResponse(await evictPod(engine, request, body), 201);
  }
  throw unknownPath();
}

/** Served on connections that are no longer HTTP; see `streaming/upgrade.ts`. */
const podStreams = new Set(["exec", "attach", "portforward"]);

async function bodyObject(request: ResourceRequest, http: HttpRequest): Promise<UnknownObject> {
  const { type } = request;
  const { object, duplicates } = await readBody(http, unrecognized(type));
  if (!object) throw badRequest(unrecognized(type)("unexpected end of JSON input", ""));
  const typed = object as unknown as UnknownObject;
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

/** What is said of a body that is not recognised as an object of any kind. */
function unrecognized({ kind }: ResourceType): Wording {
  return (problem, text) => {
    const told = problem.startsWith("yaml")
      ? problem
      : `couldn't get version/kind; json parse error: ${problem}`;
    return `the object provided is unrecognized (must be of type ${kind}): ${told} (${summaryOf(text)})`;
  };
}

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

async function requiredObject(http: HttpRequest): Promise<UnknownObject> {
  const { object } = await readBody(http);
  if (!object) throw badRequest("the request has no body");
  return object as unknown as UnknownObject;
}

async function bodyOptions(request: ResourceRequest, http: HttpRequest): Promise<DeleteOptions> {
  const wording: Wording = (problem) => `couldn't get version/kind; json parse error: ${problem}`;
  const body = ((await readBody(http, wording)).object ?? {}) as DeleteOptions;
  if (body.dryRun?.some((each) => each !== "All")) {
    throw invalidOptions("DeleteOptions", (errors) =>
      errors.unsupported("dryRun", body.dryRun, ["All"]),
    );
  }
  if (body.dryRun?.includes("All")) request.dryRun = true;
  return deleteOptionsOf(body, request.query);
}

function missingVersion({ type, name }: ResourceRequest): StatusError {
  return new StatusError({
    code: 422,
    message: `${type.plural}.${type.group} "${name}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`,
    details: {
      name,
      group: type.group,
      kind: type.plural,
      causes: [
        {
          reason: "FieldValueInvalid",
          message: "Invalid value: 0: must be specified for an update",
          field: "metadata.resourceVersion",
        },
      ],
    },
  });
}
