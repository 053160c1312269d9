import { type Informer, keyOf, MultiMap, type ObjectKey, type Pod, type Service } from "@spry/kube";

/** Services by the values that they select, in the order of their label keys. */
type ByValues = MultiMap<string, ObjectKey>;

/**
 * Which Services select a Pod, without a look at each of them: a namespace may have thousands, whose selectors name the same few
 * labels. For each set of labels that any of them names, the Pod's values are looked up.
 */
export class SelectorIndex {
  /** Namespace → label keys → values. */
  readonly #namespaces = new Map<string, Map<string, ByValues>>();

  constructor(services: Informer<Service>) {
    services.onChange((change) => {
      if (change.type === "updated") this.#delete(change.previous);
      if (change.type === "deleted") this.#delete(change.object);
      else this.#add(change.object);
    });
  }

  servicesOf({ metadata }: Pod): ObjectKey[] {
    const { namespace = "", labels = {} } = metadata;
    return [...(this.#namespaces.get(namespace) ?? [])].flatMap(([keys, byValues]) => {
      const values = keys.split(separator).map((key) => labels[key]);
      if (values.includes(undefined)) return [];
      return byValues.get(values.join(separator));
    });
  }

  #add(service: Service): void {
    const { namespace, keys, values } = placeOf(service);
    if (!keys) return;
    const bySelector = entry(this.#namespaces, namespace, () => new Map<string, ByValues>());
    entry(bySelector, keys, (): ByValues => new MultiMap()).add(values, keyOf(service));
  }

  #delete(service: Service): void {
    const { namespace, keys, values } = placeOf(service);
    const bySelector = this.#namespaces.get(namespace);
    const byValues = bySelector?.get(keys);
    byValues?.delete(values, keyOf(service));
    if (byValues?.size === 0) bySelector?.delete(keys);
    if (bySelector?.size === 0) this.#namespaces.delete(namespace);
  }
}

/** Neither keys nor values of labels contain it. */
const separator = ",";

/** A Service without a selector selects nothing: it has no keys. */
function placeOf({ metadata, spec }: Service): { namespace: string; keys: string; values: string } {
  const selector = Object.entries(spec?.selector ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    namespace: metadata.namespace ?? "",
    keys: selector.map(([key]) => key).join(separator),
    values: selector.map(([, value]) => value).join(separator),
  };
}

function entry<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
