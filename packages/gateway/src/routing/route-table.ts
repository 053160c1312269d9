import { type Function } from "@spry/function";
import { type Informer, type ObjectKey } from "@spry/kube";
import { type Route } from "./route.ts";
import { type ServiceRoutes } from "./service-routes.ts";

/** From what a host stands for to the route of its requests, kept current by informers. */
export class RouteTable {
  readonly #services: ServiceRoutes;
  readonly #functions: Informer<Function>;

  /** `functions` is indexed by `namespace`. */
  constructor(services: ServiceRoutes, functions: Informer<Function>) {
    this.#services = services;
    this.#functions = functions;
  }

  /** `key` is `namespace/name`. */
  find(key: ObjectKey): Route | undefined {
    return this.#services.find(key);
  }

  hasFunctions(namespace: string): boolean {
    return this.#functions.byIndex("namespace", namespace).length > 0;
  }

  close(): void {
    this.#services.close();
  }
}
