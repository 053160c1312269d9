import { StatusError, type UnknownObject } from "@spry/kube";
import { copyOf } from "../json-copy.ts";
import { requestToken } from "../authentication/token-request.ts";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, conflict, methodNotAllowed, notFound, unknownPath } from "../errors.ts";
import { type HttpRequest, type HttpResponse } from "../http/message.ts";
import { acceptedForm, mediaTypeOf } from "../http/negotiation.ts";
import { readText } from "../http/request-body.ts";
import { jsonResponse, textResponse } from "../http/responses.ts";
import { patchKindOf } from "../patch/patch.ts";
import { bindingType, evictionType } from "../resources/body-types.ts";
import { deleteCollection, deleteObject } from "./delete.ts";
import { isTrue } from "./list-options.ts";
import { patchObject } from "./patch.ts";
import { evictPod } from "./eviction.ts";
import { bindPod, podLog } from "./pod-subresources.ts";
import { type Presentation, presentationOf } from "./presentation.ts";
import { getObject, listObjects } from "./read.ts";
import { bodyObject, bodyOptions, requiredObject } from "./request-object.ts";
import { handleScale } from "./scale-handler.ts";
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
      if (isWatch(request)) return watchObjects(engine, request, presentation);
      return listObjects(engine, request, presentation);
    case "POST": {
      if (request.type.namespaced && !request.namespace) throw methodNotAllowed();
      const object = await bodyObject(request, http);
      request.name = object.metadata.name ?? "";
      const created = await createObject(engine, request, object);
      return writtenResponse(engine, request, presentation, created, 201);
    }
    case "DELETE": {
      if (request.type.namespaced && !request.namespace) throw methodNotAllowed();
      const options = await bodyOptions(request, http);
      const deleted = await deleteCollection(engine, request, options);
      await engine.conversions.prepare(request.type, deleted);
      const metadata = { resourceVersion: String(engine.store.revision) };
      return textResponse(presentation.list(deleted, metadata), 200, request.warnings);
    }
  }
  throw methodNotAllowed();
}

function isWatch({ query, deprecatedWatch }: ResourceRequest): boolean {
  return deprecatedWatch === true || isTrue(query, "watch");
}

async function handleObject(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  const presentation = presentationOf(request, acceptedForm(http, request.type, request.name));
  switch (http.method) {
    case "GET":
      if (request.deprecatedWatch) return watchObjects(engine, request, presentation);
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
      // For Pods and objects that wait, the response is the object; for deleted ones, a success (as on a cluster).
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
  return writtenResponse(engine, request, presentation, updated, 200);
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
  return writtenResponse(engine, request, presentation, object, created ? 201 : 200);
}

/** Of what a write has made: mostly the very object that is stored, and that has its text already. */
function writtenResponse(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
  object: UnknownObject,
  status: number,
): HttpResponse {
  const { name = "" } = object.metadata;
  const stored = engine.store.get({ ...placeOf(request), name });
  const text = stored?.holds(object)
    ? presentation.one(stored)
    : JSON.stringify(presentation.object(object));
  return textResponse(text, status, request.warnings);
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
    const { warnings } = request;
    if (request.subresource === "binding") {
      const binding = await bodyObject(request, http, bindingType);
      return jsonResponse(await bindPod(engine, request, binding), 201, warnings);
    }
    if (request.subresource === "eviction") {
      const eviction = await bodyObject(request, http, evictionType, "policy/v1beta1");
      return jsonResponse(await evictPod(engine, request, eviction), 201, warnings);
    }
  }
  throw unknownPath();
}

/** Served on connections that are no longer HTTP; see `streaming/upgrade.ts`. */
const podStreams = new Set(["exec", "attach", "portforward"]);

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
