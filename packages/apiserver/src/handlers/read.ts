import { isGone, StatusError } from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { notFound } from "../errors.ts";
import { type HttpResponse } from "../http/message.ts";
import { textResponse } from "../http/responses.ts";
import { type StoredObject } from "../store/stored-object.ts";
import {
  continueToken,
  leastRevisionOf,
  type ListOptions,
  listOptionsOf,
  tooLargeVersion,
} from "./list-options.ts";
import { type Presentation } from "./presentation.ts";
import { selectionOf } from "./selection.ts";
import { placeOf } from "./write.ts";

export async function getObject(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): Promise<HttpResponse> {
  const least = leastRevisionOf(request.query);
  const { store } = engine;
  const stored = await store.read(() => {
    if (least > store.revision) throw tooLargeVersion(least, store.revision);
    return store.get(placeOf(request));
  });
  if (!stored) throw notFound(request.type, request.name);
  await engine.conversions.prepare(request.type, [stored]);
  return textResponse(presentation.one(stored), 200, request.warnings);
}

/**
 * A page of a collection in the state of one revision: the latest, that of the first page, or with
 * `resourceVersionMatch=Exact` the one that the client names.
 */
export async function listObjects(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): Promise<HttpResponse> {
  const options = listOptionsOf(request.query);
  const { limit, position } = options;
  const selection = selectionOf(request);
  const { objects, revision } = await engine.store.read(() => stateOf(engine, request, options));
  const found: StoredObject[] = [];
  let rest = 0;
  for (const stored of objects) {
    if (position && stored.key <= position.after) continue;
    if (!selection.matches(stored)) continue;
    if (limit > 0 && found.length >= limit) rest++;
    else found.push(stored);
  }
  await engine.conversions.prepare(request.type, found);
  const last = found.at(-1);
  const metadata = {
    resourceVersion: String(revision),
    ...(rest > 0 && last && { continue: continueToken(revision, last.key) }),
    // With a selector the rest is not known to a cluster either.
    ...(rest > 0 && selection.all && { remainingItemCount: rest }),
  };
  const response = textResponse(presentation.list(found, metadata), 200, request.warnings);
  response.pin = (giveUp) => engine.store.snapshots.open(request.namespace, giveUp);
  return response;
}

interface State {
  objects: StoredObject[];
  revision: number;
}

/** The collection as the options want it. Throws a `StatusError` 410 when that state is forgotten, 504 when it is yet to come. */
function stateOf(
  { store }: Engine,
  { type, namespace }: ResourceRequest,
  { position, revision = 0, match }: ListOptions,
): State {
  const latest = store.revision;
  if (Math.max(revision, position?.revision ?? 0) > latest) {
    throw tooLargeVersion(position?.revision ?? revision, latest);
  }
  const wanted = position?.revision ?? (match === "Exact" ? revision : latest);
  if (wanted === -1 || wanted === latest) {
    return { objects: store.list(type.collection, namespace), revision: latest };
  }
  try {
    return { objects: store.listAt(type.collection, wanted, namespace), revision: wanted };
  } catch (cause) {
    if (!isGone(cause)) throw cause;
    throw forgotten(position?.after);
  }
}

function forgotten(after: string | undefined): StatusError {
  if (after === undefined) {
    const message = "The resourceVersion for the provided list is too old.";
    return new StatusError({ code: 410, message });
  }
  // With this token a client can continue, in whatever state there is.
  return new StatusError({
    code: 410,
    message:
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    metadata: { continue: continueToken(-1, after) },
  });
}
