import { messageOf, StatusError } from "@spry/kube";
import { type Engine, type ResourceRequest } from "../engine.ts";
import { type HttpResponse } from "../http/message.ts";
import { streamResponse } from "../http/responses.ts";
import { type StoreEvent } from "../store/event-log.ts";
import { StoredObject } from "../store/stored-object.ts";
import { tooLargeVersion, type WatchOptions, watchOptionsOf } from "./list-options.ts";
import { type Presentation } from "./presentation.ts";
import { type Selection, selectionOf } from "./selection.ts";

type EventType = "ADDED" | "MODIFIED" | "DELETED";

const bookmarkIntervalMs = 60_000;
/** Clients whose watch ends come back at once; this spreads them (as a cluster does). */
const defaultTimeoutMs = 30 * 60_000;
/** A timer that is set for longer ends at once. */
const maxTimeoutMs = 2 ** 31 - 1;
/** A client that does not read: its watch ends when this much waits for it. */
const maxWaitingBytes = 32 * 1024 * 1024;
const maxWatches = 5000;

let openWatches = 0;

/**
 * The lines that tell the change which is being passed around: watchers hear of it one right after the
 * other, so each form is written once, and nothing is kept for long.
 */
let current: { stored: StoredObject; lines: Map<string, Uint8Array> } | undefined;

/** Streams the changes of a collection until the time is up or the client goes away. It begins with what is on disk. */
export function watchObjects(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): Promise<HttpResponse> {
  return engine.store.read(() => watchFrom(engine, request, presentation));
}

function watchFrom(
  engine: Engine,
  request: ResourceRequest,
  presentation: Presentation,
): HttpResponse {
  if (openWatches >= maxWatches) {
    throw new StatusError({ code: 429, message: `there are ${maxWatches} watches already` });
  }
  const options = watchOptionsOf(request.query);
  if (options.revision > engine.store.revision) {
    throw tooLargeVersion(options.revision, engine.store.revision);
  }
  const selection = selectionOf(request);
  const stream = new ReadableStream<Uint8Array>(
    new WatchSource(engine, request, presentation, selection, options),
    new ByteLengthQueuingStrategy({ highWaterMark: maxWaitingBytes }),
  );
  return streamResponse(stream, presentation.encoding.contentType);
}

class WatchSource {
  readonly #engine: Engine;
  readonly #request: ResourceRequest;
  #presentation: Presentation;
  readonly #selection: Selection;
  readonly #options: WatchOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #stops: (() => void)[] = [];
  /** What waits for a webhook that converts it, in order. */
  #converted: Promise<void> | undefined;

  constructor(
    engine: Engine,
    request: ResourceRequest,
    presentation: Presentation,
    selection: Selection,
    options: WatchOptions,
  ) {
    this.#engine = engine;
    this.#request = request;
    this.#presentation = presentation;
    this.#selection = selection;
    this.#options = options;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    openWatches++;
    this.#stops.push(() => openWatches--);
    const { signal } = this.#request;
    const end = () => this.#end();
    for (const each of [signal, this.#engine.closing]) {
      if (each.aborted) return this.#end();
      each.addEventListener("abort", end, { once: true });
      this.#stops.push(() => each.removeEventListener("abort", end));
    }
    const wanted = this.#options.timeoutSeconds * 1000 || defaultTimeoutMs;
    const timeoutMs = Math.min(Math.max(wanted, 0), maxTimeoutMs);
    this.#stops.push(this.#engine.clock.after(timeoutMs, end));
    try {
      this.#begin();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      // Headers are out: a watch tells its failure as an event.
      this.#send(this.#presentation.encoding.event("ERROR", JSON.stringify(error.status)));
      this.#end();
    }
  }

  cancel(): void {
    this.#end();
  }

  #begin(): void {
    const { store } = this.#engine;
    const { type, namespace } = this.#request;
    const { initialEvents, bookmarks } = this.#options;
    let since = this.#options.revision;
    // Without a version (or with 0) the objects that are there come first, as additions.
    if (initialEvents ?? since === 0) {
      since = store.revision;
      const all = store.list(type.collection, namespace);
      if (type.conversion) this.#inOrder(all, () => {});
      for (const stored of all) {
        if (stored.revision <= since && this.#selection.matches(stored))
          this.#tell("ADDED", stored);
      }
      if (initialEvents && bookmarks) this.#bookmark({ "k8s.io/initial-events-end": "true" });
    } else if (since === 0) since = store.revision;
    this.#stops.push(store.watch(type.collection, since, (event) => this.#hear(event)));
    if (bookmarks) this.#scheduleBookmark();
  }

  /** One object that cannot be shown must not disturb the store or the other watchers. */
  #hear(event: StoreEvent): void {
    try {
      this.#pass(event);
    } catch (error) {
      this.#engine.log.error({ error: messageOf(error) }, "telling a change failed");
      this.#end();
    }
  }

  /** A change of a selected object; also one by which an object becomes, or is no longer, selected. */
  #pass({ type, current, previous }: StoreEvent): void {
    const before = previous !== undefined && this.#selection.matches(previous);
    if (type === "DELETED") {
      if (before) this.#tell("DELETED", current);
      return;
    }
    const after = this.#selection.matches(current);
    if (after) this.#tell(before ? "MODIFIED" : "ADDED", current);
    else if (before) this.#tell("DELETED", lastSelected(previous, current));
  }

  #tell(type: EventType, stored: StoredObject): void {
    const presentation = this.#nextPresentation();
    this.#inOrder([stored], () => this.#send(lineOf(type, stored, presentation)));
  }

  #nextPresentation(): Presentation {
    const presentation = this.#presentation;
    this.#presentation = presentation.later ?? presentation;
    return presentation;
  }

  /** At once, unless a webhook has to be asked for the version first. */
  #inOrder(objects: readonly StoredObject[], send: () => void): void {
    const { type } = this.#request;
    if (!type.conversion) return send();
    this.#converted = (this.#converted ?? Promise.resolve())
      .then(() => this.#engine.conversions.prepare(type, objects))
      .then(send)
      .catch((error: unknown) => {
        this.#engine.log.error({ error: messageOf(error) }, "telling a change failed");
        this.#end();
      });
  }

  #scheduleBookmark(): void {
    this.#stops.push(
      this.#engine.clock.after(bookmarkIntervalMs, () => {
        if (!this.#controller) return;
        this.#bookmark();
        this.#scheduleBookmark();
      }),
    );
    // Only the latest timer and the fixed stops are worth keeping.
    if (this.#stops.length > 64) this.#stops = this.#stops.filter((_, i) => i < 8 || i > 60);
  }

  #bookmark(annotations?: Record<string, string>): void {
    const { type } = this.#request;
    const apiVersion = type.group ? `${type.group}/${type.version}` : type.version;
    const resourceVersion = String(this.#engine.store.committed);
    const metadata = { resourceVersion, ...(annotations && { annotations }) };
    const object = this.#nextPresentation().object({ kind: type.kind, apiVersion, metadata });
    this.#inOrder([], () =>
      this.#send(this.#presentation.encoding.event("BOOKMARK", JSON.stringify(object))),
    );
  }

  #send(line: Uint8Array): void {
    if (!this.#controller) return;
    this.#controller.enqueue(line);
    if ((this.#controller.desiredSize ?? 0) < 0) this.#end();
  }

  #end(): void {
    const controller = this.#controller;
    this.#controller = undefined;
    for (const stop of this.#stops.splice(0)) stop();
    try {
      controller?.close();
    } catch {
      // Cancelled by the reader: closed already.
    }
  }
}

/** An object that is no longer selected is told as it was, with the revision of the change. */
function lastSelected(previous: StoredObject, current: StoredObject): StoredObject {
  const object = previous.copy();
  object.metadata.resourceVersion = String(current.revision);
  return new StoredObject(previous, current.revision, JSON.stringify(object), object);
}

function lineOf(type: EventType, stored: StoredObject, presentation: Presentation): Uint8Array {
  if (current?.stored !== stored) current = { stored, lines: new Map() };
  const { lines } = current;
  const key = `${type} ${presentation.key}`;
  let line = lines.get(key);
  if (!line) {
    line = presentation.encoding.event(type, presentation.one(stored));
    lines.set(key, line);
  }
  return line;
}
