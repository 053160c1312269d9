import { type Function, knativeLabels } from "@spry/function";
import {
  type Change,
  type EndpointSlice,
  type Informer,
  keyOf,
  type ObjectKey,
  type Service,
} from "@spry/kube";
import {
  type Absence,
  type Destination,
  type DestinationPolicy,
} from "../activation/destination.ts";
import { type AttemptLimits } from "../attempt/attempt.ts";
import { explain } from "../activation/explanation.ts";
import { notReady } from "../http/error-response.ts";
import { addressesOf, serviceOfSlice } from "./endpoints.ts";
import { type Route } from "./route.ts";

export interface ServiceSources {
  services: Informer<Service>;
  /** Indexed by `service`. */
  slices: Informer<EndpointSlice>;
  functions: Informer<Function>;
}

export interface ServiceRoutesOptions {
  /** How long a request waits for a Function whose first version is being built or deployed. */
  readyWaitMs: number;
  createDestination(key: ObjectKey, policy: DestinationPolicy): Destination;
}

interface ServiceRoute extends Route {
  destination: Destination;
}

/** How long a request waits for a Pod that was lost, and tries others after one has refused a connection. */
const patienceMs = 1_000;
const servicePort = 80;
/**
 * A runtime that can answers 408 itself, at the limit; so much later the gateway does. A process that is blocked is ended later still
 * (runtime-contract.md 6.4).
 */
const lateness = { share: 0.15, minMs: 500, maxMs: 1_500 };

/** Undefined where the Function says nothing about its time: the gateway's own limit is above the runtimes' own. */
function limitsOf(fn: Function | undefined): AttemptLimits | undefined {
  const variable = fn?.spec.env?.findLast(({ name }) => name === "FUNC_TIMEOUT");
  const seconds = fn?.spec.timeoutSeconds ?? Number(variable?.value);
  if (!(seconds > 0)) return undefined;
  const { share, minMs, maxMs } = lateness;
  const ms = seconds * 1000;
  return { saidMs: ms, startMs: ms + Math.min(Math.max(ms * share, minMs), maxMs) };
}

/** The way of serving without Knative: from a Function's Service to the Pods of its EndpointSlices. */
export class ServiceRoutes {
  readonly #sources: ServiceSources;
  readonly #options: ServiceRoutesOptions;
  readonly #routes = new Map<ObjectKey, ServiceRoute>();

  constructor(sources: ServiceSources, options: ServiceRoutesOptions) {
    this.#sources = sources;
    this.#options = options;
    sources.services.onChange(({ object }) => {
      this.#refresh(keyOf(object));
      // Without a selector it may not be the one that they should wait for.
      this.reroute(keyOf(object));
    });
    sources.slices.onChange((change) => this.#slicesChanged(change));
    sources.functions.onChange(({ object }) => this.#refresh(keyOf(object)));
  }

  /** Also for a Function that has no Service yet. */
  find(key: ObjectKey): Route | undefined {
    const route = this.#routes.get(key);
    return route ?? (this.#isWanted(key) ? this.#create(key) : undefined);
  }

  /** The route of a Service that selects Pods and has some. */
  selected(key: ObjectKey): Route | undefined {
    const selector = this.#sources.services.get(key)?.spec?.selector ?? {};
    const route = Object.keys(selector).length > 0 ? this.#routes.get(key) : undefined;
    return route?.destination.hasBackends ? route : undefined;
  }

  /** Requests that wait for this Function look for their destination again. */
  reroute(key: ObjectKey): void {
    this.#routes.get(key)?.destination.reroute();
  }

  close(): void {
    for (const { destination } of this.#routes.values()) destination.close();
    this.#routes.clear();
  }

  /** The label is the Service's; a Function without one yet has it, too. */
  #isClusterLocal(key: ObjectKey): boolean {
    const { services, functions } = this.#sources;
    return [services.get(key), functions.get(key)].some(
      (object) => object?.metadata.labels?.[knativeLabels.visibility] === "cluster-local",
    );
  }

  #isWanted(key: ObjectKey): boolean {
    const { services, functions } = this.#sources;
    return services.get(key) !== undefined || functions.get(key) !== undefined;
  }

  #create(key: ObjectKey): Route {
    const { functions } = this.#sources;
    const destination = this.#options.createDestination(key, {
      name: `Function ${key}`,
      concurrency: undefined,
      unreachablePatienceMs: patienceMs,
      get limits() {
        return limitsOf(functions.get(key));
      },
      absence: () => this.#absence(key),
    });
    const isClusterLocal = () => this.#isClusterLocal(key);
    const route: ServiceRoute = {
      key,
      isKnative: false,
      get isClusterLocal() {
        return isClusterLocal();
      },
      destination,
      choose: () => destination,
      leadsTo: (other: Destination) => other === destination,
    };
    this.#routes.set(key, route);
    return route;
  }

  #slicesChanged(change: Change<EndpointSlice>): void {
    const before = change.type === "updated" ? serviceOfSlice(change.previous) : [];
    for (const key of new Set([...before, ...serviceOfSlice(change.object)])) this.#refresh(key);
  }

  #refresh(key: ObjectKey): void {
    const { services, slices } = this.#sources;
    const service = services.get(key);
    if (service && !this.#routes.has(key)) this.#create(key);
    const route = this.#routes.get(key);
    if (!route) return;
    if (!this.#isWanted(key)) {
      this.#routes.delete(key);
      route.destination.close();
      return;
    }
    const portOfSlice = (slice: EndpointSlice) => service && portOf(service, slice);
    const { ready, ending } = addressesOf(slices.byIndex("service", key), portOfSlice);
    const { hasBackends } = route.destination;
    // As kube-proxy does it.
    route.destination.update(ready.length > 0 ? ready : ending);
    if (hasBackends && !route.destination.hasBackends) route.destination.reroute();
  }

  #absence(key: ObjectKey): Absence {
    const fn = this.#sources.functions.get(key);
    const { reason, message, state } = explain(key, fn, true);
    const { message: localMessage } = explain(key, fn, false);
    const { readyWaitMs } = this.#options;
    return {
      patienceMs: { deploying: readyWaitMs, absent: patienceMs, failed: 0, scaledToZero: 0 }[state],
      otherwise: notReady(reason, message, localMessage),
    };
  }
}

/** The Pods' port behind the Service's port 80 (or its only one). */
function portOf(service: Service, slice: EndpointSlice): number | undefined {
  const ports = service.spec?.ports ?? [];
  const wanted = ports.find(({ port }) => port === servicePort) ?? ports[0];
  if (!wanted) return undefined;
  return slice.ports?.find(({ name }) => (name ?? "") === (wanted.name ?? ""))?.port;
}
