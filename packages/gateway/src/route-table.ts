import { type Function } from "@spry/function";
import {
  type Change,
  type Clock,
  type EndpointSlice,
  type Informer,
  keyOf,
  type ObjectKey,
  type Service,
} from "@spry/kube";
import { Upstream, type UpstreamSettings } from "./upstream.ts";

export interface RouteSources {
  services: Informer<Service>;
  /** Indexed by `service`. */
  slices: Informer<EndpointSlice>;
  functions: Informer<Function>;
}

interface Route {
  upstreams: Upstream[];
  /** Where the search for the least loaded begins, so that equals take turns. */
  turn: number;
}

const serviceNameLabel = "kubernetes.io/service-name";
const servicePort = 80;

/** The index of slices that `RouteSources` needs: `namespace/service`. */
export function serviceOfSlice(slice: EndpointSlice): string[] {
  const name = slice.metadata.labels?.[serviceNameLabel];
  return name ? [`${slice.metadata.namespace}/${name}`] : [];
}

/** From a Function's key to the Pods that answer for it, kept current by informers. */
export class RouteTable {
  readonly #sources: RouteSources;
  readonly #settings: UpstreamSettings;
  readonly #clock: Clock;
  readonly #routes = new Map<ObjectKey, Route>();
  readonly #waiters = new Map<ObjectKey, Set<() => void>>();

  constructor(sources: RouteSources, settings: UpstreamSettings, clock: Clock) {
    this.#sources = sources;
    this.#settings = settings;
    this.#clock = clock;
    sources.services.onChange(({ object }) => this.#refresh(keyOf(object)));
    sources.slices.onChange((change) => this.#slicesChanged(change));
    sources.functions.onChange(({ object }) => this.#wake(keyOf(object)));
  }

  /** Whether a Service answers for this key, with or without Pods behind it. */
  has(key: ObjectKey): boolean {
    return this.#routes.has(key);
  }

  /** Whether there are addresses, be they suspect or busy. */
  hasUpstreams(key: ObjectKey): boolean {
    return (this.#routes.get(key)?.upstreams.length ?? 0) > 0;
  }

  /** The least loaded address that is not suspect; undefined when there is none. */
  pick(key: ObjectKey): Upstream | undefined {
    const route = this.#routes.get(key);
    if (!route) return undefined;
    const { upstreams } = route;
    let best: Upstream | undefined;
    for (let i = 0; i < upstreams.length; i++) {
      const upstream = upstreams[(route.turn + i) % upstreams.length];
      if (!upstream || upstream.isSuspect) continue;
      if (!best || upstream.active < best.active) best = upstream;
    }
    route.turn = (route.turn + 1) % (upstreams.length || 1);
    return best;
  }

  /** Resolves at the next change of the key's addresses or of its Function, or after `ms`. */
  changed(key: ObjectKey, ms: number): Promise<void> {
    return new Promise((resolve) => {
      let waiters = this.#waiters.get(key);
      if (!waiters) this.#waiters.set(key, (waiters = new Set()));
      const all = waiters;
      const wake = () => {
        cancel();
        all.delete(wake);
        if (all.size === 0 && this.#waiters.get(key) === all) this.#waiters.delete(key);
        resolve();
      };
      const cancel = this.#clock.after(ms, wake);
      all.add(wake);
    });
  }

  close(): void {
    for (const { upstreams } of this.#routes.values()) {
      for (const upstream of upstreams) upstream.retire();
    }
    this.#routes.clear();
  }

  #slicesChanged(change: Change<EndpointSlice>): void {
    const before = change.type === "updated" ? serviceOfSlice(change.previous) : [];
    for (const key of new Set([...before, ...serviceOfSlice(change.object)])) this.#refresh(key);
  }

  #refresh(key: ObjectKey): void {
    const service = this.#sources.services.get(key);
    const route = this.#routes.get(key);
    const addresses = service ? this.#addressesOf(key, service) : [];
    const known = new Map(route?.upstreams.map((upstream) => [upstream.address, upstream]));
    const upstreams = addresses.map((address) => {
      const upstream = known.get(address);
      known.delete(address);
      return upstream ?? new Upstream(address, this.#settings, this.#clock);
    });
    if (service) this.#routes.set(key, { upstreams, turn: route?.turn ?? 0 });
    else this.#routes.delete(key);
    for (const gone of known.values()) gone.retire();
    this.#wake(key);
  }

  /**
   * `host:port` of the ready endpoints; when there is none, of those that end but still serve, as
   * kube-proxy has it.
   */
  #addressesOf(key: ObjectKey, service: Service): string[] {
    const ready = new Set<string>();
    const ending = new Set<string>();
    for (const slice of this.#sources.slices.byIndex("service", key)) {
      const port = portOf(service, slice);
      if (port === undefined) continue;
      for (const { addresses, conditions } of slice.endpoints ?? []) {
        const [address] = addresses;
        if (!address) continue;
        const at = `${slice.addressType === "IPv6" ? `[${address}]` : address}:${port}`;
        if (conditions?.ready ?? true) ready.add(at);
        else if (conditions?.serving && conditions.terminating) ending.add(at);
      }
    }
    return [...(ready.size > 0 ? ready : ending)];
  }

  #wake(key: ObjectKey): void {
    for (const wake of this.#waiters.get(key) ?? []) wake();
  }
}

/** The Pods' port behind the Service's port 80 (or its only one). */
function portOf(service: Service, slice: EndpointSlice): number | undefined {
  const ports = service.spec?.ports ?? [];
  const wanted = ports.find(({ port }) => port === servicePort) ?? ports[0];
  if (!wanted) return undefined;
  return slice.ports?.find(({ name }) => (name ?? "") === (wanted.name ?? ""))?.port;
}
