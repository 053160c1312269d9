/**
 * What a request to the host of an APIRule passes before it gets a destination, in the order of the original
 * (docs/contributing/rooms/exposure.md). Requests to hosts of Functions are not concerned.
 */
import { type TLSSocket } from "node:tls";
import {
  type HostRoutes,
  matchStatus,
  otherReadings,
  requestChanges,
  requestPath,
} from "@spry/exposure";
import { type ObjectKey } from "@spry/kube";
import {
  forbidden,
  guarded,
  malformedRequest,
  misdirected,
  notExposed,
  type ErrorResponse,
  serviceMissing,
  unknownHost,
} from "../http/error-response.ts";
import { type ClientRequest } from "../http/client-side.ts";
import { type Filter, type Outcome } from "../request/filters.ts";
import { type Passage, type RequestDeps } from "../request/passage.ts";
import { type Exposed } from "./exposure.ts";

/**
 * Its host: a Function's on plain connections, or else an APIRule's. Over TLS there are the hosts of APIRules alone, and a
 * Function whose callers need tokens is called by such a host only: no request bypasses what they demand.
 */
export const exposedHost: Filter = (passage, deps) => {
  const { routes, exposure } = deps;
  const mayBeFunction =
    passage.key !== "" && !passage.isSecure && exposure?.functionHosts !== false;
  const route = mayBeFunction ? routes.find(passage.key) : undefined;
  if (route) {
    // Also for the hosts of its tags, whose route it is as well.
    const guard = exposure?.hosts.guardOf(route.key);
    return guard === undefined ? undefined : guarded(route.key, guard);
  }
  const found = exposedAt(passage.host, deps);
  if (!found) return mayBeFunction ? undefined : unknownHost(passage.host);
  passage.exposed = {
    host: found.host,
    routes: found,
    rule: undefined,
    responseHeaders: {},
    requestHeaders: {},
    caller: undefined,
    reason: undefined,
  };
  return undefined;
};

/**
 * What an APIRule serves at this host. One that Knative's objects of another namespace name is theirs if they were there
 * first: no namespace takes it from another by an APIRule.
 */
export function exposedAt(
  authority: string,
  { exposure, ownHosts }: Pick<RequestDeps, "exposure" | "ownHosts">,
): HostRoutes | undefined {
  const found = exposure?.hosts.find(hostName(authority));
  const own = found && ownHosts.find(authority);
  if (!found || !own) return found;
  const isSameTenant = namespaceOf(own.key) === namespaceOf(found.host.apiRule);
  const since = exposure?.hosts.heldSince(found.host);
  const wasFirst = since !== undefined && since < own.createdAt;
  return isSameTenant || wasFirst ? found : undefined;
}

/** The connection was opened for this host: a certificate for one is none for another (RFC 9110, section 15.5.20). */
export const servername: Filter = ({ request, host, isSecure, exposed }) => {
  if (!isSecure || !exposed) return undefined;
  const { servername: named } = request.socket as TLSSocket & { servername?: string };
  return named === hostName(host) ? undefined : misdirected(host);
};

/** What plain HTTP gets. */
export const plainHttp: Filter = (passage, { exposure, settings }) => {
  const { exposed, isSecure, host, path, request, response } = passage;
  if (!exposed || isSecure || exposed.host.plainHttp === "serve") return undefined;
  // A proxy of ours has taken HTTPS off: to redirect would go in circles.
  if (settings.trustForwarded && request.headers["x-forwarded-proto"] === "https") return undefined;
  const port = exposure?.httpsPort;
  // As for a host that it does not have.
  if (exposed.host.plainHttp === "refuse" || port === undefined) return unknownHost(host);
  const authority = `${hostName(host)}${port === 443 ? "" : `:${port}`}`;
  const target = path.startsWith("/") ? path : "/";
  response.writeHead(301, { location: `https://${authority}${target}`, "content-length": 0 }).end();
  return "handled";
};

/** The path by which rules are chosen is what the Service gets. */
export const path: Filter = (passage) => {
  if (!passage.exposed) return undefined;
  const normal = requestPath(passage.path);
  if (normal === undefined) return severalReadings;
  const query = passage.path.indexOf("?");
  passage.path = query < 0 ? normal : normal + passage.path.slice(query);
  return undefined;
};

const severalReadings = malformedRequest("its path can be understood in several ways");

export const cors: Filter = ({ exposed, request, response }, { exposure }) => {
  if (!exposed || !exposure) return undefined;
  const { headers, method = "" } = request;
  const decision = exposure.checks.corsOf(exposed.host).decide({
    method,
    origin: headers.origin,
    requestedMethod: headers["access-control-request-method"],
  });
  exposed.responseHeaders = decision.headers;
  if (decision.kind !== "preflight") return undefined;
  response.writeHead(200, { ...decision.headers, "content-length": 0 }).end();
  return "handled";
};

/** The rule for its method and path. */
export const rule: Filter = ({ exposed, request, path: target }) => {
  if (!exposed) return undefined;
  const query = target.indexOf("?");
  const asked = query < 0 ? target : target.slice(0, query);
  const matchOf = (each: string) => exposed.routes.match(request.method ?? "", each);
  const match = matchOf(asked);
  const isOther = (each: string) => {
    const other = matchOf(each);
    return other.kind === "rule" && (match.kind !== "rule" || other.rule !== match.rule);
  };
  // What one rule opens must not be what another one protects for a Service that reads the path in its own way.
  const isEncodedRule = match.kind === "rule" && JSON.stringify(match.rule.path).includes("%");
  if (otherReadings(asked, { isEncodedRule }).some(isOther)) return severalReadings;
  if (match.kind === "rule") {
    exposed.rule = match.rule;
    return undefined;
  }
  exposed.reason = {
    path: "no rule names the path",
    method: "no rule names the path with this method",
    excluded: "an earlier rule has the path, without this method",
  }[match.kind];
  return matchStatus[match.kind] === 403 ? forbidden : notExposed;
};

/** Who calls. The answer says no more than that it is refused. */
export const caller: Filter<Outcome | Promise<Outcome>> = (passage, { exposure }) => {
  const { exposed, request } = passage;
  if (!exposed?.rule || !exposure) return undefined;
  const { authentication } = exposed.rule;
  if (authentication.kind === "none") return undefined;
  if (authentication.kind === "refused") {
    exposed.reason = authentication.reason;
    return forbidden;
  }
  const query = passage.path.indexOf("?");
  const asked = {
    header: (name: string) => headerOf(request.rawHeaders, name),
    query: query < 0 ? "" : passage.path.slice(query + 1),
  };
  return exposure.checks.jwt.check(asked, authentication, tenantOf(exposed)).then((decision) => {
    if (decision.kind === "allowed") {
      const { sub } = decision.claims;
      if (typeof sub === "string") exposed.caller = sub.slice(0, maxCallerLength);
      return undefined;
    }
    exposed.reason = decision.reason;
    return decision.status === 401 ? unauthorized(passage.host, passage.isSecure) : forbidden;
  });
};

/** What the rule sets on the request, and where it goes. */
export const target: Filter = (passage) => {
  const exposedRule = passage.exposed?.rule;
  if (!passage.exposed || !exposedRule) return undefined;
  if (!exposedRule.target.exists) {
    passage.exposed.reason = "the rule's Service, or its port, does not exist";
    return serviceMissing;
  }
  const { rawHeaders } = passage.request;
  const header = (name: string) => headerOf(rawHeaders, name);
  passage.exposed.requestHeaders = requestChanges(exposedRule, header);
  const { namespace, name } = exposedRule.target;
  passage.key = `${namespace}/${name}`;
  return undefined;
};

const exposureFilters = [servername, plainHttp, path, cors, rule, caller, target];

/** For a request that `exposedHost` has found an APIRule for. */
export async function passExposed(passage: Passage, deps: RequestDeps): Promise<Outcome> {
  for (const filter of exposureFilters) {
    const result = filter(passage, deps);
    const outcome = result instanceof Promise ? await result : result;
    if (outcome) return outcome;
  }
  return undefined;
}

/** Whose keys are asked for. */
export function tenantOf({ host }: Exposed): string {
  return namespaceOf(host.apiRule);
}

const namespaceOf = (key: ObjectKey): string => key.slice(0, key.indexOf("/"));

/** What the log keeps of a token's subject. */
const maxCallerLength = 200;

/** Without port and final dot, in lower case. */
export function hostName(authority: string): string {
  const colon = authority.lastIndexOf(":");
  const name = colon < 0 || authority.endsWith("]") ? authority : authority.slice(0, colon);
  return (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();
}

/** Every value of a header: where two readers could choose differently, the request is treated as one without a token. */
function headerOf(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    value = value === undefined ? rawHeaders[i + 1] : `${value}, ${rawHeaders[i + 1]}`;
  }
  return value;
}

/** RFC 6750, section 3: without the reason. */
function unauthorized(host: string, isSecure: boolean): ErrorResponse {
  const realm = `${isSecure ? "https" : "http"}://${hostName(host)}`;
  return {
    status: 401,
    reason: "Unauthorized",
    message: "the request has no valid token",
    headers: { "www-authenticate": `Bearer realm="${realm}", error="invalid_token"` },
  };
}

export function isSecure({ socket }: ClientRequest): boolean {
  return "encrypted" in socket;
}
