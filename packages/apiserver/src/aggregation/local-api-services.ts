import { randomUUID } from "node:crypto";
import {
  type Clock,
  type Condition,
  deepEqual,
  type Logger,
  messageOf,
  setCondition,
} from "@spry/kube";
import { metricsGroup } from "../metrics/metrics.ts";
import {
  type ApiService,
  apiServices,
  type ApiServiceSpec,
  availabilityOf,
} from "../kinds/api-service/api-service.ts";
import { type Catalog } from "../resources/catalog.ts";
import { builtin } from "../schema/schema.ts";
import { StaleWriteError, type Store } from "../store/store.ts";
import { timestampOf } from "../timestamp.ts";
import { available } from "./availability.ts";

/** Marks the objects that this keeper owns: made once at the start, or kept as long as their definition. */
const managedLabel = "kube-aggregator.kubernetes.io/automanaged";
const definitions = "apiextensions.k8s.io/customresourcedefinitions";

/** kube-apiserver's (`cmd/kube-apiserver/app/aggregator.go`): group, and version where it is not 15. */
const priorities: Record<string, number | [group: number, version: number]> = {
  "v1.": [18_000, 1],
  "v1.apps": 17_800,
  "v1.events.k8s.io": 17_750,
  "v1.authentication.k8s.io": 17_700,
  "v1.authorization.k8s.io": 17_600,
  "v2.autoscaling": [17_500, 30],
  "v1.autoscaling": 17_500,
  "v1.batch": 17_400,
  "v1.networking.k8s.io": 17_200,
  "v1.policy": 17_100,
  "v1.rbac.authorization.k8s.io": 17_000,
  "v1.apiextensions.k8s.io": 16_700,
  "v1.admissionregistration.k8s.io": 16_700,
  "v1.scheduling.k8s.io": 16_600,
  "v1.coordination.k8s.io": 16_500,
  "v1.discovery.k8s.io": 16_200,
};

interface Dependencies {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  log: Logger;
}

/** Keeps the APIServices of what this server itself serves, by which tools learn where a group comes from. */
export class LocalApiServices {
  readonly #deps: Dependencies;
  #stops: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  /** Resolves when all are there. */
  async start(): Promise<void> {
    const { store } = this.#deps;
    const own = [...builtin.groupVersions, ...builtin.reviews];
    const names = own.map(({ group, version }) => `${version}.${group}`);
    const specs = own.map(({ group, version }): ApiServiceSpec => {
      const priority = priorities[`${version}.${group}`];
      const [groupPriorityMinimum, versionPriority] = Array.isArray(priority)
        ? priority
        : [priority ?? 15_000, 15];
      return { ...(group && { group }), version, groupPriorityMinimum, versionPriority };
    });
    const metrics = { group: metricsGroup, version: "v1beta1" };
    specs.push({ ...metrics, groupPriorityMinimum: 100, versionPriority: 100 });
    names.push(`v1beta1.${metricsGroup}`);
    this.#later(async () => {
      await Promise.all(specs.map((spec) => this.#write(spec, "onstart")));
    });
    for (const { name, object } of store.list(apiServices))
      if (object.metadata.labels?.[managedLabel] === "onstart" && !names.includes(name))
        this.#later(() => this.#remove(name));
    this.#later(() => this.#sync());
    const sync = () => this.#later(() => this.#sync());
    this.#stops = [
      store.watch(definitions, store.revision, sync),
      store.watch(apiServices, store.revision, ({ type, current }) => {
        const isLocal = !(current.object as ApiService).spec.service;
        if (type === "DELETED") sync();
        else if (isLocal) this.#later(() => this.#markAvailable(current.name));
      }),
    ];
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    await this.#running;
  }

  #later(work: () => Promise<void>): void {
    this.#running = this.#running
      .then(() => (this.#stopped ? undefined : work()))
      .catch((error: unknown) => {
        if (error instanceof StaleWriteError) return this.#later(work);
        this.#deps.log.error({ error: messageOf(error) }, "updating APIServices failed");
      });
  }

  /** The versions of custom resources: made, and removed, with them. */
  async #sync(): Promise<void> {
    const { store, catalog } = this.#deps;
    const custom = catalog.all().filter((type) => type.custom);
    const wanted = new Map(
      custom.map(({ group, version }) => [`${version}.${group}`, { group, version }]),
    );
    const isOurs = ({ labels }: ApiService["metadata"]) => labels?.[managedLabel] === "true";
    const gone = store
      .list(apiServices)
      .filter(({ name, object }) => isOurs(object.metadata) && !wanted.has(name));
    await Promise.all([
      ...[...wanted.values()].map((spec) =>
        this.#write({ ...spec, groupPriorityMinimum: 1000, versionPriority: 100 }, "true"),
      ),
      ...gone.map(({ name }) => this.#remove(name)),
    ]);
  }

  async #write(spec: ApiServiceSpec, managed: "onstart" | "true"): Promise<void> {
    const { store, clock } = this.#deps;
    // That of `/api/v1` has no group.
    const name = `${spec.version}.${spec.group ?? ""}`;
    const place = { collection: apiServices, namespace: "", name };
    const stored = store.get(place);
    const status = { conditions: setCondition<Condition>([], local, clock) };
    if (!stored) {
      const metadata = {
        name,
        labels: { [managedLabel]: managed },
        uid: randomUUID(),
        creationTimestamp: timestampOf(clock.now()),
      };
      const made = { kind: "APIService", apiVersion: "apiregistration.k8s.io/v1", metadata, spec };
      await store.put(place, undefined, { ...made, status });
      return;
    }
    // One that another client has written is left alone.
    const isOurs = stored.object.metadata.labels?.[managedLabel] === managed;
    if (!isOurs || deepEqual(stored.object.spec, spec)) return;
    await store.put(stored, stored, { ...stored.copy(), spec, status });
  }

  async #remove(name: string): Promise<void> {
    const { store } = this.#deps;
    const stored = store.get({ collection: apiServices, namespace: "", name });
    if (stored) await store.remove(stored);
  }

  async #markAvailable(name: string): Promise<void> {
    const { store, clock } = this.#deps;
    const stored = store.get({ collection: apiServices, namespace: "", name });
    const object = stored?.object as ApiService | undefined;
    if (!stored || !object || object.spec.service) return;
    if (availabilityOf(object)?.reason === local.reason) return;
    const conditions = setCondition(object.status?.conditions, local, clock);
    await store.put(stored, stored, { ...stored.copy(), status: { conditions } });
  }
}

const local = available("Local", "Local APIServices are always available");
