/**
 * What a request passes before it is sent to a Pod, in this order. Each filter adds to what is known of the request, or
 * refuses it.
 */
import {
  bodyTooLarge,
  type ErrorResponse,
  unexpectedProbe,
  unknownFunction,
} from "../http/error-response.ts";
import { exposedAt } from "../exposure/filters.ts";
import { readHead } from "../http/request-head.ts";
import { byPath } from "../pages/by-path.ts";
import { parseHost } from "../routing/host.ts";
import { serviceMissing } from "../http/error-response.ts";
import { type Passage, type RequestDeps } from "./passage.ts";

/** An error refuses the request; `handled` says that the filter has responded to it. */
export type Outcome = ErrorResponse | "handled" | undefined;
export type Filter<Result = Outcome> = (passage: Passage, deps: RequestDeps) => Result;

/** The request's head is sound, and says which host and path are meant. */
export const head: Filter = (passage) => {
  const target = readHead(passage.request);
  if ("status" in target) return target;
  passage.host = target.host;
  passage.path = target.path;
  return undefined;
};

/** Whether its host has the form of a Function's. A request that has come to an address of a Service's own may have any. */
export const host: Filter = (passage) => {
  if (passage.key !== "") return undefined;
  const name = parseHost(passage.host);
  if (!name) return undefined;
  passage.key = name.key;
  return undefined;
};

/** Whether its host is one that Knative's objects name, where no APIRule has it by right. Needs the routes. */
export const ownHost: Filter = (passage, deps) => {
  if (passage.key !== "" || passage.isSecure) return undefined;
  const found = deps.ownHosts.find(passage.host);
  if (found && !exposedAt(passage.host, deps)) passage.key = found.key;
  return undefined;
};

/** Where a request leads that has passed the filters so far. */
export function routeOf({ exposed, key }: Passage, routes: RequestDeps["routes"]) {
  return exposed?.rule ? routes.target(exposed.rule.target) : routes.find(key);
}

/** There is a route for it, which is open to where it comes from. */
export const route: Filter = (passage, { routes }) => {
  const found = routeOf(passage, routes);
  // What an APIRule exposes is open by that.
  const isOutside = passage.isExternal && !passage.exposed;
  if (!found || (found.isClusterLocal && isOutside)) {
    if (passage.exposed) return serviceMissing;
    const namespace = passage.key.slice(0, passage.key.indexOf("/"));
    return unknownFunction(passage.key, routes.hasFunctions(namespace));
  }
  passage.route = found;
  return undefined;
};

/** What Knative's components ask each other; its answer needs no Pod, and must not wake one. */
export const probe: Filter = ({ request, response, route: found }) => {
  const value = request.headers["k-network-probe"];
  if (value === undefined || !found?.isKnative) return undefined;
  if (value !== "activator" && value !== "probe") return unexpectedProbe(String(value));
  response.writeHead(200, { "content-type": "text/plain" }).end(value);
  return "handled";
};

/** Its body, as far as its length is announced, is not too large. */
export const bodySize: Filter = ({ request }, { settings }) => {
  const length = Number(request.headers["content-length"] ?? 0);
  return length > settings.maxRequestBytes ? bodyTooLarge(settings.maxRequestBytes) : undefined;
};

/** One of the route's destinations gets it: that of the tag it names, where Routes allow that, or one by the shares. */
export const trafficSplit: Filter = (passage) => {
  const { route: found } = passage;
  const tag = passage.request.headers["knative-serving-tag"];
  const tagged = typeof tag === "string" ? found?.chooseTagged?.(tag) : undefined;
  passage.destination = tagged ?? found?.choose();
  return undefined;
};

/** Those that need no routes, so that a gateway that has just started can refuse. */
export const entryFilters: readonly Filter[] = [head, host, byPath];
export const routeFilters: readonly Filter[] = [route, probe, bodySize, trafficSplit];

export function pass(filters: readonly Filter[], passage: Passage, deps: RequestDeps): Outcome {
  for (const filter of filters) {
    const outcome = filter(passage, deps);
    if (outcome) return outcome;
  }
  return undefined;
}
