import { type Clock, Informer, type KubeClient, type KubeObject, type Logger } from "@spry/kube";
import { type ApiResource } from "../api-resources.ts";

/** Objects of these kinds come in numbers, and nothing owns them. */
const ignored = new Set(["Event.", "Event.events.k8s.io", "Lease.coordination.k8s.io"]);

export interface KindWatchesOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  /** Kinds that the other controllers watch already. */
  shared: readonly Informer<KubeObject>[];
  onPut: (kind: ApiResource, object: KubeObject) => void;
  onDelete: (uid: string) => void;
}

/** One watch per kind that can be deleted; started and ended as kinds come and go. */
export class KindWatches {
  readonly #options: KindWatchesOptions;
  readonly #watched = new Map<string, AbortController>();

  constructor(options: KindWatchesOptions) {
    this.#options = options;
  }

  /** Brings the watches to this list of kinds; resolves when each has seen what is there. */
  async set(kinds: readonly ApiResource[], signal: AbortSignal): Promise<void> {
    const wanted = new Map(kinds.filter(isWatchable).map((kind) => [idOf(kind), kind]));
    for (const [id, ending] of this.#watched) {
      if (wanted.has(id)) continue;
      ending.abort();
      this.#watched.delete(id);
    }
    const synced: Promise<void>[] = [];
    for (const [id, kind] of wanted)
      if (!this.#watched.has(id)) synced.push(this.#start(id, kind, signal));
    await Promise.all(synced);
  }

  #start(id: string, kind: ApiResource, signal: AbortSignal): Promise<void> {
    const { client, clock, log, shared, onPut, onDelete } = this.#options;
    const ending = new AbortController();
    this.#watched.set(id, ending);
    const reused = shared.find(({ resource }) => idOf(resource) === id);
    const informer = reused ?? new Informer(client, kind, { clock, log, transform: metadataOnly });
    const stop = informer.onChange(({ type, object }) => {
      if (type !== "deleted") onPut(kind, object);
      else if (object.metadata.uid) onDelete(object.metadata.uid);
    });
    const end = AbortSignal.any([signal, ending.signal]);
    end.addEventListener("abort", stop, { once: true });
    if (!reused) void informer.run(end);
    const gone = new Promise<void>((resolve) => {
      end.addEventListener("abort", () => resolve(), { once: true });
    });
    return Promise.race([informer.synced, gone]);
  }
}

/** What `OwnershipGraph` asks for: labels and annotations are most of the rest. */
function metadataOnly({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  const { deletionTimestamp, finalizers, ownerReferences } = metadata;
  return {
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      deletionTimestamp,
      finalizers,
      ownerReferences,
    } as KubeObject["metadata"],
  };
}

function isWatchable(kind: ApiResource): boolean {
  const { verbs } = kind;
  return (
    !ignored.has(`${kind.kind}.${kind.group}`) &&
    ["list", "watch", "delete"].every((verb) => verbs.includes(verb))
  );
}

function idOf({ group, plural }: Pick<ApiResource, "group" | "plural">): string {
  return `${plural}.${group}`;
}
