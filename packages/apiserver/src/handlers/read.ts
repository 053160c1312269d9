import { type Engine, type ResourceRequest } from "../engine.ts";
import { badRequest, gone, notFound } from "../errors.ts";
import { textResponse } from "../http/responses.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { type Presentation } from "./presentation.ts";
import { selectionOf } from "./selection.ts";
import { placeOf } from "./write.ts";

export async function getObject(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): Promise<Response> {
  await engine.store.settled();
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(request.type, request.name);
  return textResponse(presentation.one(stored), 200, request.warnings);
}

/**
 * A page of a collection. Pages show each object as it is when the page is read; a watch from the
 * list's resourceVersion (that of its first page) tells every change since.
 */
export async function listObjects(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): Promise<Response> {
  const { query, type, namespace } = request;
  await engine.store.settled();
  const selection = selectionOf(request);
  const position = positionOf(query, engine.store.revision);
  const limit = limitOf(query);
  checkExactVersion(query, engine.store.revision);
  const found: StoredObject[] = [];
  let rest = 0;
  for (const stored of engine.store.list(type.collection, namespace)) {
    if (position.after !== undefined && stored.key <= position.after) continue;
    if (!selection.matches(stored)) continue;
    if (limit > 0 && found.length >= limit) rest++;
    else found.push(stored);
  }
  const last = found.at(-1);
  const metadata = {
    resourceVersion: String(position.revision),
    ...(rest > 0 && last && { continue: continueToken(position.revision, last.key) }),
    // With a selector the rest is not known to a cluster either.
    ...(rest > 0 && selection.all && { remainingItemCount: rest }),
  };
  return textResponse(presentation.list(found, metadata), 200, request.warnings);
}

interface Position {
  revision: number;
  after?: string;
}

function positionOf(query: URLSearchParams, revision: number): Position {
  const token = query.get("continue");
  if (!token) return { revision };
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, "base64url").toString()) as {
      rv: number;
      start: string;
    };
    if (Number.isSafeInteger(rv) && typeof start === "string")
      return { revision: rv, after: start };
  } catch {
    // Told below.
  }
  throw badRequest("continue key is not valid: it is not one that this server gave out");
}

function continueToken(rv: number, start: string): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv, start })).toString("base64url");
}

function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get("limit") ?? 0);
  if (!Number.isSafeInteger(limit))
    throw badRequest(`limit: ${query.get("limit")} is not a number`);
  return limit;
}

function checkExactVersion(query: URLSearchParams, revision: number): void {
  const version = query.get("resourceVersion") ?? "";
  if (query.get("resourceVersionMatch") !== "Exact" || query.has("continue")) return;
  if (Number(version) !== revision) throw gone(Number(version), revision);
}
