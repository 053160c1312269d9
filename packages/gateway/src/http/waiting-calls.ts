import { type ObjectKey } from "@spry/kube";
import { exposedHost } from "../exposure/filters.ts";
import { route } from "../request/filters.ts";
import { type Passage, type RequestDeps } from "../request/passage.ts";
import { type ClientRequest, type ClientResponse } from "./client-side.ts";
import { requestHeaders } from "./forwarded-headers.ts";
import { type ErrorResponse, unknownHost } from "./error-response.ts";

/** A request to a Function whose client does not wait for the result (RFC 7240, `Prefer: respond-async`). */
export interface WaitingCall {
  request: ClientRequest;
  response: ClientResponse;
  /** `namespace/name` of the Function. */
  key: ObjectKey;
  /** Path and query, as the Function gets them. */
  path: string;
  /** As the Function gets them, names and values by turns; with `host` first. */
  headers: string[];
}

/** What accepts such calls, and answers questions about them. */
export interface CallAcceptor {
  /** Responds with 202, or with why not. */
  accept(call: WaitingCall): Promise<void>;
  /** Responds with state and result of the call with this id, at a path below `callsPath`. */
  report(id: string, request: ClientRequest, response: ClientResponse): Promise<void>;
}

/** On each host of a Function, and on the gateway's own. */
export const callsPath = "/.well-known/spry/calls/";

const ownHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const label = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?";
/** `/async/<namespace>/<function>/…`, and OpenFaaS' `/async-function/<function>[.<namespace>]/…`. */
const asyncPath = new RegExp(`^/async/(?<namespace>${label})/(?<name>${label})(?<rest>[/?].*)?$`);
const openFaas = new RegExp(
  `^/async-function/(?<name>${label})(?:\\.(?<namespace>${label}))?(?<rest>[/?].*)?$`,
);

/** Whether a request is for the acceptor; cheap, since every request is looked at. */
export function isWaitingCall(passage: Passage): boolean {
  const { request, path } = passage;
  if (request.headers["prefer"] !== undefined && prefersAsync(request.headers["prefer"]))
    return true;
  if (path.startsWith(callsPath)) return true;
  return path.startsWith("/async") && isOwnHost(passage);
}

/** Whether the request is to the gateway itself, and its path says for which Function it is. */
export function isOwnHost({ host, key }: Passage): boolean {
  return key === "" && ownHost.test(host);
}

function prefersAsync(prefer: string | string[]): boolean {
  return /(?:^|,)\s*respond-async\s*(?:[,;]|$)/i.test([prefer].flat().join(","));
}

/** Hands the request on; or returns why it is refused, `undefined` when it is the acceptor's. */
export async function passOn(
  passage: Passage,
  deps: RequestDeps,
  acceptor: CallAcceptor,
): Promise<ErrorResponse | undefined> {
  const { request, response } = passage;
  if (passage.path.startsWith(callsPath)) {
    const id = passage.path.slice(callsPath.length).split("?")[0] ?? "";
    await acceptor.report(id, request, response);
    return undefined;
  }
  const named = isOwnHost(passage) ? readPath(passage.path) : undefined;
  if (named) {
    passage.key = named.key;
    passage.path = named.path;
    passage.host = `${named.key.split("/").reverse().join(".")}.svc.cluster.local`;
    // What is closed by the Function's own name, or has none here, is not open by the gateway's.
    const closed = exposedHost(passage, deps);
    if (closed && closed !== "handled") return closed;
    // A host of APIRules has not been asked for, and its rules have not been looked at.
    if (passage.exposed) return unknownHost(passage.host);
  }
  if (passage.key === "" && !passage.exposed) return unknownHost(passage.host);
  const refused = route(passage, deps);
  if (refused && refused !== "handled") return refused;
  const key = passage.exposed ? passage.route?.key : passage.key;
  const { host, path, isSecure } = passage;
  const changes = passage.exposed?.requestHeaders;
  const headers = requestHeaders(request, { host, isSecure, changes, trust: false });
  await acceptor.accept({ request, response, key: key ?? "", path, headers });
  return undefined;
}

function readPath(path: string): { key: ObjectKey; path: string } | undefined {
  const found = (asyncPath.exec(path) ?? openFaas.exec(path))?.groups;
  if (!found) return undefined;
  const { namespace = "default", name = "", rest = "" } = found;
  return { key: `${namespace}/${name}`, path: rest.startsWith("/") ? rest : `/${rest}` };
}
