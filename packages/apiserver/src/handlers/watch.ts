import { ownerOf } from "../http/owner.ts";
import { messageOf, StatusError } from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { type HttpResponse } from "../http/message.ts";
import { pacedResponse } from "../http/responses.ts";
import { type StoreEvent } from "../store/event-log.ts";
import { StoredObject } from "../store/stored-object.ts";
import { type EventType, ownLine } from "../watch/line.ts";
import { WatchStream } from "../watch/watch-stream.ts";
import { tooLargeVersion, type WatchOptions, watchOptionsOf } from "./list-options.ts";
import { type Presentation } from "./presentation.ts";
import { type Selection, selectionOf } from "./selection.ts";

const bookmarkIntervalMs = 60_000;
/** Clients whose watch ends come back at once; this spreads them (as a cluster does). */
const defaultTimeoutMs = 30 * 60_000;
/** A timer that is set for longer ends at once. */
const maxTimeoutMs = 2 ** 31 - 1;

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
  engine.watches.makeRoom(ownerOf(request.user));
  const options = watchOptionsOf(request.query);
  if (options.revision > engine.store.revision) {
    throw tooLargeVersion(options.revision, engine.store.revision);
  }
  const selection = selectionOf(request);
  const watcher = new Watcher(engine, request, presentation, selection, options);
  return pacedResponse(watcher.start(), presentation.encoding.contentType);
}

class Watcher {
  readonly #engine: Engine;
  readonly #request: ResourceRequest;
  #presentation: Presentation;
  readonly #selection: Selection;
  readonly #options: WatchOptions;
  readonly #stream: WatchStream;
  #stops: (() => void)[] = [];
  #cancelBookmark = () => {};
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
    const errorLine = ({ status }: StatusError) =>
      presentation.encoding.event("ERROR", JSON.stringify(status));
    const stop = () => this.#stop();
    this.#stream = new WatchStream(engine.watches, errorLine, stop, ownerOf(request.user));
  }

  start(): WatchStream {
    const { signal } = this.#request;
    const end = () => this.#end();
    const cancel = () => this.#stream.cancel();
    for (const [each, react] of [
      [signal, cancel],
      [this.#engine.closing, end],
    ] as const) {
      if (each.aborted) {
        react();
        return this.#stream;
      }
      each.addEventListener("abort", react, { once: true });
      this.#stops.push(() => each.removeEventListener("abort", react));
    }
    const wanted = this.#options.timeoutSeconds * 1000 || defaultTimeoutMs;
    const timeoutMs = Math.min(Math.max(wanted, 0), maxTimeoutMs);
    this.#stops.push(this.#engine.clock.after(timeoutMs, end));
    try {
      this.#begin();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      // Headers are out: a watch reports its failure as an event.
      this.#send(this.#presentation.encoding.event("ERROR", JSON.stringify(error.status)));
      this.#end();
    }
    return this.#stream;
  }

  #begin(): void {
    const { store } = this.#engine;
    const { type, namespace } = this.#request;
    const { initialEvents, bookmarks } = this.#options;
    let since = this.#options.revision;
    // Without a version (or with 0) the objects that are there come first, as additions.
    if (initialEvents ?? since === 0) {
      since = store.revision;
      const present = since;
      this.#tellAll(
        store
          .list(type.collection, namespace)
          .filter((stored) => stored.revision <= present && this.#selection.matches(stored)),
      );
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
      this.#engine.log.error({ error: messageOf(error) }, "sending a change to a watch failed");
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
    this.#inOrder([stored], () =>
      this.#stream.push(this.#engine.watches.lines.of(type, stored, presentation)),
    );
  }

  /** What is there at the beginning: each object is written when the client has read those before it. */
  #tellAll(objects: readonly StoredObject[]): void {
    if (objects.length === 0) return;
    const first = this.#nextPresentation();
    const later = this.#presentation;
    const line = (index: number) => {
      const stored = objects[index];
      try {
        return stored && this.#engine.watches.lines.of("ADDED", stored, index ? later : first);
      } catch (error) {
        this.#engine.log.error({ error: messageOf(error) }, "sending an object to a watch failed");
        return undefined;
      }
    };
    const { snapshots } = this.#engine.store;
    const done = snapshots.open(this.#request.namespace, () => this.#stream.expire());
    const send = () => this.#stream.pushLater({ count: objects.length, line, done });
    this.#inOrder(objects, send, done);
  }

  #nextPresentation(): Presentation {
    const presentation = this.#presentation;
    this.#presentation = presentation.later ?? presentation;
    return presentation;
  }

  /** At once, unless a webhook has to be asked for the version first. */
  #inOrder(objects: readonly StoredObject[], send: () => void, failed?: () => void): void {
    const { type } = this.#request;
    if (!type.conversion) return send();
    this.#converted = (this.#converted ?? Promise.resolve())
      .then(() => this.#engine.conversions.prepare(type, objects))
      .then(send)
      .catch((error: unknown) => {
        this.#engine.log.error({ error: messageOf(error) }, "sending a change to a watch failed");
        failed?.();
        this.#end();
      });
  }

  #scheduleBookmark(): void {
    this.#cancelBookmark = this.#engine.clock.after(bookmarkIntervalMs, () => {
      if (this.#stream.isEnded) return;
      this.#bookmark();
      this.#scheduleBookmark();
    });
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
    this.#stream.push(ownLine(line));
  }

  #end(): void {
    this.#stop();
    this.#stream.end();
  }

  #stop(): void {
    this.#cancelBookmark();
    for (const stop of this.#stops.splice(0)) stop();
  }
}

/** By the change that took them out of a selection: the same for all selections that they were in. */
const departed = new WeakMap<StoredObject, StoredObject>();

/** An object that is no longer selected is reported as it was, with the revision of the change. */
function lastSelected(previous: StoredObject, current: StoredObject): StoredObject {
  let last = departed.get(current);
  if (!last) {
    const object = previous.copy();
    object.metadata.resourceVersion = String(current.revision);
    last = new StoredObject(previous, current.revision, JSON.stringify(object), object);
    departed.set(current, last);
  }
  return last;
}
