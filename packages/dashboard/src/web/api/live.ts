/** Lists that are always current: the project's own informer, shared by all views that show the same. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Informer, type KubeObject, type Logger, pathOf, type Resource } from "@spry/kube/browser";
import { client } from "./client.ts";
import { readable } from "./object-shapes.ts";

export interface LiveOptions<T> {
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  /** Reduces an object to what is kept of it. `kind` identifies the transform, because functions cannot be compared. */
  keep?: { kind: string; transform: (object: T) => T };
}

export interface Live<T> {
  readonly items: ReadonlySignal<readonly T[]>;
  readonly isReady: ReadonlySignal<boolean>;
  /** Why it cannot be read; empty while it can. */
  readonly problem: ReadonlySignal<string>;
}

/** A view that is left and opened again finds its list as it was. */
const lingerMs = 20_000;

class Shared<T extends KubeObject> implements Live<T> {
  readonly items = signal<readonly T[]>([]);
  readonly isReady = signal(false);
  readonly problem = signal("");
  readonly #end = new AbortController();
  #users = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isScheduled = false;

  constructor(resource: Resource<T>, options: LiveOptions<T>, onUnused: () => void) {
    const { namespace, labelSelector, fieldSelector, keep } = options;
    const informer = new Informer<T>(client, resource, {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
      transform: (object) => {
        const found = readable(resource.plural, object);
        return keep ? keep.transform(found) : found;
      },
      maxRetryMs: 5_000,
      log: this.#log(),
    });
    const publish = () => {
      this.#isScheduled = false;
      this.problem.value = "";
      this.items.value = [...informer.list()];
    };
    // A list of thousands of objects arrives as thousands of changes: they are shown together.
    informer.onChange(() => {
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setTimeout(publish, 16);
    });
    void informer.synced.then(() => this.#begin(publish));
    void informer.run(this.#end.signal);
    this.#onUnused = onUnused;
  }

  readonly #onUnused: () => void;

  #begin(publish: () => void): void {
    publish();
    this.isReady.value = true;
  }

  use(): () => void {
    this.#users++;
    clearTimeout(this.#timer);
    return () => {
      if (--this.#users > 0) return;
      this.#timer = setTimeout(() => {
        this.#end.abort();
        this.#onUnused();
      }, lingerMs);
    };
  }

  /** The informer reports failures to its log: this one shows them to the user. */
  #log(): Logger {
    const silent = () => {};
    const log: Logger = {
      debug: silent,
      info: silent,
      warn: (fields) => {
        const { error } = fields as { error?: unknown };
        if (typeof error === "string") this.problem.value = error;
      },
      error: silent,
      child: () => log,
    };
    return log;
  }
}

const shared = new Map<string, Shared<KubeObject>>();

function sharedOf<T extends KubeObject>(resource: Resource<T>, options: LiveOptions<T>): Shared<T> {
  const { namespace, labelSelector, fieldSelector, keep } = options;
  const path = pathOf(resource, { namespace });
  const key = [path, labelSelector, fieldSelector, keep?.kind].join("\n");
  let found = shared.get(key) as Shared<T> | undefined;
  if (!found) {
    found = new Shared<T>(resource, options, () => shared.delete(key));
    shared.set(key, found);
  }
  return found;
}

/** A list that is current for as long as a view shows it. */
export function useLive<T extends KubeObject>(
  resource: Resource<T>,
  options: LiveOptions<T> = {},
): Live<T> {
  const { namespace, labelSelector, fieldSelector } = options;
  const live = useMemo(
    () => sharedOf(resource, options),
    [resource, namespace, labelSelector, fieldSelector],
  );
  useEffect(() => live.use(), [live]);
  return live;
}
