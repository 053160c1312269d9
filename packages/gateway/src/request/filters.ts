/**
 * What a request passes before it is sent to a Pod, in this order. Each filter adds to what is known of the request, or
 * refuses it.
 */
import {
  bodyTooLarge,
  type ErrorResponse,
  unexpectedProbe,
  unknownFunction,
  unknownHost,
} from "../http/error-response.ts";
import { readHead } from "../http/request-head.ts";
import { parseHost } from "../routing/host.ts";
import { type Passage, type RequestDeps } from "./passage.ts";

/** An error refuses the request; `handled` says that the filter has responded to it. */
export type Filter = (passage: Passage, deps: RequestDeps) => ErrorResponse | "handled" | undefined;

/** The request's head is sound, and says which host and path are meant. */
export const head: Filter = (passage) => {
  const target = readHead(passage.request);
  if ("status" in target) return target;
  passage.host = target.host;
  passage.path = target.path;
  return undefined;
};

/** Its host has the form of a Function's. A request that has come to an address of a Service's own may have any host. */
export const host: Filter = (passage) => {
  if (passage.key !== "") return undefined;
  const name = parseHost(passage.host);
  if (!name) return unknownHost(passage.host);
  passage.key = name.key;
  return undefined;
};

/** There is a route for it, which is open to where it comes from. */
export const route: Filter = (passage, { routes }) => {
  const found = routes.find(passage.key);
  if (!found || (found.isClusterLocal && passage.isExternal)) {
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

/** One of the route's destinations gets it. */
export const trafficSplit: Filter = (passage) => {
  passage.destination = passage.route?.choose();
  return undefined;
};

/** Those that need no routes, so that a gateway that has just started can refuse. */
export const entryFilters: readonly Filter[] = [head, host];
export const routeFilters: readonly Filter[] = [route, probe, bodySize, trafficSplit];

export function pass(
  filters: readonly Filter[],
  passage: Passage,
  deps: RequestDeps,
): ReturnType<Filter> {
  for (const filter of filters) {
    const outcome = filter(passage, deps);
    if (outcome) return outcome;
  }
  return undefined;
}
