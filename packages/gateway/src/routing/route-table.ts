import { type Function, type RouteTarget } from "@spry/function";
import { type Informer, type ObjectKey } from "@spry/kube";
import { type Destination } from "../activation/destination.ts";
import { type ServiceTargets } from "../exposure/service-targets.ts";
import { type KnativeRoutes } from "./knative-routes.ts";
import { type Route } from "./route.ts";
import { type ServiceRoutes } from "./service-routes.ts";

/** Of Services of Functions and of Knative. */
const servicePort = 80;

/** From what a host stands for to the route of its requests, kept current by informers. */
export class RouteTable {
  readonly #services: ServiceRoutes;
  readonly #knative: KnativeRoutes;
  readonly #functions: Informer<Function>;
  readonly #targets: ServiceTargets;

  /** `functions` is indexed by `namespace`; `targets` are Services that are neither Functions nor Knative's. */
  constructor(
    services: ServiceRoutes,
    knative: KnativeRoutes,
    functions: Informer<Function>,
    targets: ServiceTargets,
  ) {
    this.#targets = targets;
    this.#services = services;
    this.#knative = knative;
    this.#functions = functions;
  }

  /**
   * `key` is `namespace/name`. A Service with a selector wins over a Route (ADR 0018), as soon as it has Pods: between the
   * two ways of serving there is no moment without.
   */
  find(key: ObjectKey): Route | undefined {
    const knative = this.#knative.find(key);
    if (knative === undefined) return this.#services.find(key);
    return this.#services.selected(key) ?? knative;
  }

  /** Of a rule of an APIRule: a Function or a Route in whichever way it is served, or else the Service's port. */
  target(target: RouteTarget): Route | undefined {
    const known =
      target.port === servicePort ? this.find(`${target.namespace}/${target.name}`) : undefined;
    return known ?? this.#targets.find(target);
  }

  /** Where requests to a Revision go that a Route names. */
  revision(key: ObjectKey): Destination | undefined {
    return this.#knative.revision(key);
  }

  /** Whether there is a route of this key, by whichever of its names and ports. */
  has(key: ObjectKey): boolean {
    return this.find(key) !== undefined || this.#targets.has(key);
  }

  hasFunctions(namespace: string): boolean {
    return this.#functions.byIndex("namespace", namespace).length > 0;
  }

  /** At most so many. */
  functions(limit: number): Function[] {
    return [...this.#functions.list()].slice(0, limit);
  }

  close(): void {
    this.#services.close();
    this.#knative.close();
    this.#targets.close();
  }
}
