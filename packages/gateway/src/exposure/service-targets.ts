import { type RouteTarget } from "@spry/function";
import {
  type Change,
  type EndpointSlice,
  type Informer,
  keyOf,
  type ObjectKey,
  type Service,
} from "@spry/kube";
import { type Destination, type DestinationPolicy } from "../activation/destination.ts";
import { notReady } from "../http/error-response.ts";
import { addressesOf, serviceOfSlice } from "../routing/endpoints.ts";
import { type Route } from "../routing/route.ts";

export interface ServiceTargetsOptions {
  createDestination(key: ObjectKey, policy: DestinationPolicy): Destination;
}

interface Target extends Route {
  readonly destination: Destination;
  readonly port: number;
}

/** Services of any kind that APIRules name, by port: those without a Function or a Route of Knative behind them. */
export class ServiceTargets {
  readonly #slices: Informer<EndpointSlice>;
  readonly #options: ServiceTargetsOptions;
  readonly #serviceOf: (slice: EndpointSlice) => ObjectKey[];
  /** By the Service's key, and then by port. */
  readonly #targets = new Map<ObjectKey, Map<number, Target>>();
  #services: Informer<Service> | undefined;
  #unlisten = () => {};

  /** `slices` is indexed by `service`, which `serviceOf` says. */
  constructor(
    slices: Informer<EndpointSlice>,
    options: ServiceTargetsOptions,
    serviceOf = serviceOfSlice,
  ) {
    this.#slices = slices;
    this.#options = options;
    this.#serviceOf = serviceOf;
    slices.onChange((change) => this.#slicesChanged(change));
  }

  /** From now on, the ports of these; undefined: of none. */
  use(services: Informer<Service> | undefined): void {
    this.#unlisten();
    this.close();
    this.#services = services;
    this.#unlisten = services?.onChange(({ object }) => this.#refresh(keyOf(object))) ?? (() => {});
  }

  find({ namespace, name, port }: RouteTarget): Route | undefined {
    const key: ObjectKey = `${namespace}/${name}`;
    const known = this.#targets.get(key)?.get(port);
    if (known || !this.#services?.get(key)) return known;
    return this.#create(key, port);
  }

  /** Whether something leads to a port of the Service. */
  has(service: ObjectKey): boolean {
    return this.#targets.has(service);
  }

  close(): void {
    for (const ports of this.#targets.values())
      for (const { destination } of ports.values()) destination.close();
    this.#targets.clear();
  }

  #create(key: ObjectKey, port: number): Target {
    const name = `Service ${key}`;
    const destination = this.#options.createDestination(key, {
      name,
      concurrency: undefined,
      unreachablePatienceMs: patienceMs,
      absence: () => ({
        patienceMs,
        otherwise: notReady("NoReadyEndpoint", `${name} has no Pod that is ready`),
      }),
    });
    const target: Target = {
      key,
      port,
      isKnative: false,
      isClusterLocal: false,
      destination,
      choose: () => destination,
      leadsTo: (other) => other === destination,
    };
    const ports = this.#targets.get(key) ?? new Map<number, Target>();
    this.#targets.set(key, ports.set(port, target));
    this.#refresh(key);
    return target;
  }

  #slicesChanged(change: Change<EndpointSlice>): void {
    const serviceOf = this.#serviceOf;
    const before = change.type === "updated" ? serviceOf(change.previous) : [];
    for (const key of new Set([...before, ...serviceOf(change.object)])) this.#refresh(key);
  }

  #refresh(key: ObjectKey): void {
    const ports = this.#targets.get(key);
    if (!ports) return;
    const service = this.#services?.get(key);
    for (const target of ports.values()) {
      const named = service?.spec?.ports?.find(({ port }) => port === target.port);
      if (!named) {
        ports.delete(target.port);
        target.destination.close();
        continue;
      }
      const portOf = (slice: EndpointSlice) =>
        slice.ports?.find(({ name }) => (name ?? "") === (named.name ?? ""))?.port;
      const { ready, ending } = addressesOf(this.#slices.byIndex("service", key), portOf);
      target.destination.update(ready.length > 0 ? ready : ending);
    }
    if (ports.size === 0) this.#targets.delete(key);
  }
}

/** How long a request waits for a Pod that was lost, and tries others after one has refused a connection. */
const patienceMs = 1_000;
