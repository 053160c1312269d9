import { type Subscription } from "@spry/function";
import { type Informer, keyOf, type ObjectKey } from "@spry/kube";
import { bounds } from "../bounds.ts";

/** Which Subscriptions of a namespace are served: the oldest, so that one more takes nothing from another. */
export class NamespaceLimit {
  readonly #cache: Pick<Informer<Subscription>, "list" | "onChange">;
  readonly #max: number;
  /** Keys of those that are too many, by namespace; computed again after one comes or goes. */
  readonly #over = new Map<string, ReadonlySet<ObjectKey>>();

  /** `look` gets the Subscriptions to reconcile again: after a deletion, one of these may be served. */
  constructor(
    cache: Pick<Informer<Subscription>, "list" | "onChange">,
    look: (key: ObjectKey) => void,
    max: number = bounds.subscriptionsOfNamespace,
  ) {
    this.#cache = cache;
    this.#max = max;
    cache.onChange(({ type, object }) => {
      if (type === "updated") return;
      const { namespace = "" } = object.metadata;
      const over = this.#over.get(namespace) ?? [];
      this.#over.delete(namespace);
      if (type === "deleted") for (const key of over) look(key);
    });
  }

  /** A sentence, for one that is too many. */
  problemOf(subscription: Subscription): string | undefined {
    const namespace = subscription.metadata.namespace ?? "";
    if (!this.#overIn(namespace).has(keyOf(subscription))) return undefined;
    return `namespace ${namespace} has more than ${this.#max} Subscriptions: only the oldest ${this.#max} are served; delete others`;
  }

  #overIn(namespace: string): ReadonlySet<ObjectKey> {
    const known = this.#over.get(namespace);
    if (known) return known;
    const ages = [...this.#cache.list()]
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map((each) => ({ key: keyOf(each), created: each.metadata.creationTimestamp ?? "" }))
      .sort((a, b) =>
        a.created < b.created || (a.created === b.created && a.key < b.key) ? -1 : 1,
      );
    const over = new Set(ages.slice(this.#max).map(({ key }) => key));
    this.#over.set(namespace, over);
    return over;
  }
}
