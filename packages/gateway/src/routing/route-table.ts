import { type Function } from "@spry/function";
import { type Informer, type ObjectKey } from "@spry/kube";
import { type KnativeRoutes } from "./knative-routes.ts";
import { type Route } from "./route.ts";
import { type ServiceRoutes } from "./service-routes.ts";

/** From what a host stands for to the route of its requests, kept current by informers. */
export class RouteTable {
  readonly #services: ServiceRoutes;
  readonly #knative: KnativeRoutes;
  readonly #functions: Informer<Function>;

  /** `functions` is indexed by `namespace`. */
  constructor(services: ServiceRoutes, knative: KnativeRoutes, functions: Informer<Function>) {
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

  hasFunctions(namespace: string): boolean {
    return this.#functions.byIndex("namespace", namespace).length > 0;
  }

  close(): void {
    this.#services.close();
    this.#knative.close();
  }
}
