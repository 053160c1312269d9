import { Informer, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { Roles } from "./roles.ts";

/** The kinds that controllers write or react to. */
const kinds: readonly Resource[] = [
  resources.pods,
  resources.deployments,
  resources.replicaSets,
  resources.jobs,
  resources.cronJobs,
  resources.horizontalPodAutoscalers,
  resources.services,
  resources.endpointSlices,
  resources.podDisruptionBudgets,
  resources.resourceQuotas,
  resources.serviceAccounts,
  resources.configMaps,
  resources.events,
] as Resource[];

interface Condition {
  type: string;
  status: string;
  reason?: string;
}

/** What a watcher has seen of one namespace. */
export class View {
  readonly roles = new Roles();
  readonly #objects = new Map<string, KubeObject>();
  /** Distinct values in their order, by what they are the values of. */
  readonly #history = new Map<string, string[]>();
  changedAt = performance.now();

  put(object: KubeObject): void {
    this.changedAt = performance.now();
    this.roles.meet(object);
    this.#objects.set(object.metadata.uid ?? "", object);
    if (object.kind === "Event" || object.kind === "Pod") return;
    const { spec, status } = object as {
      spec?: { replicas?: number };
      status?: { conditions?: Condition[] };
    };
    if (spec?.replicas !== undefined) this.#note(object, "spec.replicas", String(spec.replicas));
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    if (deletionTimestamp) {
      // Its controller and the collector race: whether its last dependants are still counted is chance in both clusters.
      this.#note(object, "deletion", `waits for ${finalizers.join(", ")}`);
      return;
    }
    for (const { type, status: value, reason } of status?.conditions ?? [])
      this.#note(object, type, reason ? `${value} ${reason}` : value);
  }

  drop(object: KubeObject): void {
    this.changedAt = performance.now();
    this.#objects.delete(object.metadata.uid ?? "");
    // Not of those that only a collector deletes in the course of another's deletion.
    if (object.kind !== "Event" && object.kind !== "Pod") this.#note(object, "deletion", "gone");
  }

  objects(): KubeObject[] {
    return [...this.#objects.values()];
  }

  history(): Record<string, string[]> {
    return Object.fromEntries(this.#history);
  }

  #note({ kind, metadata }: KubeObject, of: string, value: string): void {
    const key = `${kind}/${metadata.name} ${of}`;
    const values = this.#history.get(key) ?? [];
    if (values.at(-1) !== value) this.#history.set(key, [...values, value]);
  }
}

/** Watches every namespace of a side: one connection per kind, however many cases run. */
export class Observer {
  readonly #views = new Map<string, View>();

  static async start(client: KubeClient, signal: AbortSignal): Promise<Observer> {
    const observer = new Observer();
    const informers = kinds.map((resource) => {
      const informer = new Informer(client, resource);
      informer.onChange(({ type, object }) => {
        const { kind } = resource;
        const view = observer.viewOf(object.metadata.namespace ?? "");
        if (type === "deleted") view.drop({ ...object, kind });
        else view.put({ ...object, kind });
      });
      void informer.run(signal);
      return informer;
    });
    await Promise.all(informers.map((each) => each.synced));
    return observer;
  }

  viewOf(namespace: string): View {
    const view = this.#views.get(namespace) ?? new View();
    this.#views.set(namespace, view);
    return view;
  }
}
