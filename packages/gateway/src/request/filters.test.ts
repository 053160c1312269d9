import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { type Destination } from "../activation/destination.ts";
import { type Route } from "../routing/route.ts";
import { exposedHost } from "../exposure/filters.ts";
import { bodySize, type Filter, head, host, probe, route, trafficSplit } from "./filters.ts";
import { type Passage, type RequestDeps } from "./passage.ts";

const destination = {} as Destination;
const routeOf = (isClusterLocal: boolean): Route => ({
  key: "default/hello",
  isKnative: true,
  isClusterLocal,
  choose: () => destination,
  leadsTo: () => true,
});
const routes: Record<string, Route> = {
  "default/open": routeOf(false),
  "default/local": routeOf(true),
};
const deps = {
  settings: { maxRequestBytes: 100 },
  routes: { find: (key: string) => routes[key], hasFunctions: () => false },
} as unknown as RequestDeps;

function passage(headers: Record<string, string>, known: Partial<Passage> = {}): Passage {
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { httpVersionMajor: 1, httpVersionMinor: 1, url: "/a?b", method: "GET" });
  Object.assign(request, { headers, rawHeaders: Object.entries(headers).flat() });
  return {
    request,
    response: new ServerResponse(request),
    upgrade: undefined,
    requestId: "id-1",
    isPublic: false,
    host: "",
    prefix: "",
    path: "",
    key: "",
    isExternal: false,
    peerRevision: undefined,
    isSecure: false,
    exposed: undefined,
    route: undefined,
    destination: undefined,
    ...known,
  };
}

test.each<[string, Filter, Passage, object]>([
  ["head", head, passage({ host: "h" }), { host: "h", path: "/a?b" }],
  ["host", host, passage({}, { host: "open.default.localhost:80" }), { key: "default/open" }],
  ["host", host, passage({}, { host: "x", key: "default/local" }), { key: "default/local" }],
  [
    "route",
    route,
    passage({}, { key: "default/open", isExternal: true }),
    { route: routes["default/open"] },
  ],
  ["route", route, passage({}, { key: "default/local" }), { route: routes["default/local"] }],
  ["probe", probe, passage({}, { route: routeOf(false) }), {}],
  ["probe", probe, passage({ "k-network-probe": "activator" }), {}],
  ["bodySize", bodySize, passage({ "content-length": "100" }), {}],
  ["trafficSplit", trafficSplit, passage({}, { route: routeOf(false) }), { destination }],
])("the filter %s lets a request pass, and adds what it knows", (_, filter, given, known) => {
  expect(filter(given, deps)).toBeUndefined();
  expect(given).toMatchObject(known);
});

test.each<[string, Filter, Passage, number, string]>([
  ["head", head, passage({}), 400, "BadRequest"],
  ["exposedHost", exposedHost, passage({}, { host: "example.com" }), 404, "UnknownHost"],
  ["route", route, passage({}, { key: "default/none" }), 404, "FunctionNotFound"],
  [
    "route",
    route,
    passage({}, { key: "default/local", isExternal: true }),
    404,
    "FunctionNotFound",
  ],
  [
    "probe",
    probe,
    passage({ "k-network-probe": "x" }, { route: routeOf(false) }),
    400,
    "UnexpectedProbe",
  ],
  ["bodySize", bodySize, passage({ "content-length": "101" }), 413, "RequestTooLarge"],
])("the filter %s refuses", (_, filter, given, status, reason) => {
  expect(filter(given, deps)).toMatchObject({ status, reason });
});

test("a probe is answered without a Pod", () => {
  const given = passage({ "k-network-probe": "activator" }, { route: routeOf(false) });
  expect(probe(given, deps)).toBe("handled");
  expect(given.response).toMatchObject({ writableEnded: true });
});
