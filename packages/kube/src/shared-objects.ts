import { type KubeObject, type WatchEvent } from "./objects.ts";
import { withoutManagedFields } from "./managed-fields.ts";
import { apiVersionOf, type Resource } from "./resources.ts";
import { offeredText, type TextHolder } from "./shared-texts.ts";

/** How many events, and how long ones, are remembered until others have heard of the same. */
const maxRecent = 32;
const maxRecentLength = 64 * 1024;
const firstTidySize = 256;

/** One version of an object. Once it rests, it is a text, and parsed only while it is in use. */
export class SharedObject<T extends KubeObject> {
  readonly resourceVersion: string | undefined;
  #parsed: WeakRef<T>;
  #text: TextHolder | undefined;

  constructor(object: T) {
    this.resourceVersion = object.metadata.resourceVersion;
    this.#parsed = new WeakRef(object);
  }

  /** Shared by all readers: never change it. If it does not rest, a caller must hold a reference to it. */
  get object(): T {
    return (
      this.live ?? this.revive(JSON.parse(withoutManagedFields(this.#text?.json ?? "null")) as T)
    );
  }

  /** The parsed form, if it is used. */
  get live(): T | undefined {
    return this.#parsed.deref();
  }

  /** From now on no caller needs to hold it. */
  rest(): void {
    if (this.#text) return;
    const { object } = this;
    const json = JSON.stringify(object);
    const offered = offeredText(object.metadata.uid);
    const isSame = offered !== undefined && withoutManagedFields(offered.json) === json;
    this.#text = isSame ? offered : { json };
  }

  /** The same version, parsed again. */
  revive(object: T): T {
    this.#parsed = new WeakRef(object);
    return object;
  }
}

/**
 * What several informers of one process hold, held once. Each of them lists and watches for itself, with its own rights and
 * selectors; an object that arrives in the version that another one has is replaced by that one's copy, and a line of a watch
 * that another one has just read is not parsed again. Nothing is kept alive by that, but for the latest few events.
 */
export class SharedObjects<T extends KubeObject> {
  readonly #known = new Map<string, WeakRef<SharedObject<T>>>();
  readonly #recent = new Map<string, WatchEvent<T>>();
  #tidySize = firstTidySize;

  /** This version as others have it, or else as it has arrived. */
  of(arrived: T): SharedObject<T> {
    const { uid, resourceVersion } = arrived.metadata;
    if (!uid || !resourceVersion) return new SharedObject(arrived);
    const known = this.#known.get(uid)?.deref();
    // A version of a uid has one content, whatever it was selected by.
    if (known?.resourceVersion === resourceVersion) {
      if (!known.live) known.revive(arrived);
      return known;
    }
    const shared = new SharedObject(arrived);
    this.#known.set(uid, new WeakRef(shared));
    if (this.#known.size > this.#tidySize) this.#tidy();
    return shared;
  }

  /** The event that this line of a watch is. Never change it. */
  event(line: string, parse: (line: string) => WatchEvent<T>): WatchEvent<T> {
    const known = this.#recent.get(line);
    if (known) return known;
    const event = parse(line);
    if (line.length > maxRecentLength) return event;
    this.#recent.set(line, event);
    if (this.#recent.size > maxRecent)
      this.#recent.delete(this.#recent.keys().next().value as string);
    return event;
  }

  #tidy(): void {
    for (const [uid, known] of this.#known) if (!known.deref()) this.#known.delete(uid);
    this.#tidySize = Math.max(firstTidySize, this.#known.size * 2);
  }
}

const byKind = new Map<string, SharedObjects<KubeObject>>();

/** Those of a resource in one of its versions. */
export function sharedObjectsOf<T extends KubeObject>(resource: Resource<T>): SharedObjects<T> {
  const kind = `${apiVersionOf(resource)}/${resource.plural}`;
  let shared = byKind.get(kind);
  if (!shared) byKind.set(kind, (shared = new SharedObjects()));
  return shared as unknown as SharedObjects<T>;
}
