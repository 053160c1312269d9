import { type UnknownObject } from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { methodNotAllowed, notFound } from "../errors.ts";
import { type HttpRequest, type HttpResponse } from "../http/message.ts";
import { mediaTypeOf } from "../http/negotiation.ts";
import { readText } from "../http/request-body.ts";
import { jsonResponse } from "../http/responses.ts";
import { patchKindOf } from "../patch/patch.ts";
import { scaleType } from "../resources/body-types.ts";
import { applyPatch, modification } from "./patch.ts";
import { bodyObject } from "./request-object.ts";
import { scaled, scaleOf, shownScale } from "./scale.ts";
import { placeOf, updateObject } from "./write.ts";

/** `/scale` of any kind that has one: its object as an `autoscaling/v1 Scale`, read and written. */
export async function handleScale(
  engine: Engine,
  request: ResourceRequest,
  http: HttpRequest,
): Promise<HttpResponse> {
  switch (http.method) {
    case "GET": {
      const object = await engine.store.read(() => current(engine, request));
      return jsonResponse(shownScale(request.type, object));
    }
    case "PUT": {
      const body = await bodyObject(request, http, scaleType);
      current(engine, request);
      return answer(engine, request, () => body);
    }
    case "PATCH": {
      const kind = patchKindOf(mediaTypeOf(http), request.type);
      const text = await readText(http);
      current(engine, request);
      if (kind !== "apply") {
        return answer(engine, request, modification(request, kind, text, scaleType));
      }
      const { object } = await applyPatch(engine, request, text);
      return jsonResponse(scaleOf(request.type, object), 200, request.warnings);
    }
  }
  throw methodNotAllowed();
}

function current(engine: Engine, request: ResourceRequest): UnknownObject {
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(request.type, request.name);
  return stored.object;
}

async function answer(
  engine: Engine,
  request: ResourceRequest,
  modify: (scale: UnknownObject) => UnknownObject,
): Promise<HttpResponse> {
  const { type, warnings } = request;
  const updated = await updateObject(engine, request, {
    subresource: "",
    modify: (object) => scaled(type, object, modify(scaleOf(type, object))),
  });
  return jsonResponse(scaleOf(type, updated), 200, warnings);
}
