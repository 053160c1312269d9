import { type ObjectKey } from "@spry/kube";
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
  /**
   * Whether the client itself could call this Service, without a token, and the Function could, too: then the result may be
   * sent there.
   */
  mayCall: (service: ObjectKey) => boolean | Promise<boolean>;
  /** Whether it comes from a program of this machine, which may reach the machine's own addresses by itself. */
  isOfMachine: boolean;
  /** Of the gateway's memory, for the body, until the response has been sent; false when there is none left. */
  takeMemory: (bytes: number) => boolean;
}

/** What accepts such calls, and answers questions about them. */
export interface CallAcceptor {
  /** Responds with 202, or with why not. */
  accept(call: WaitingCall): Promise<void>;
  /**
   * Responds with state and result of the call with this id, at a path below `callsPath`; `isPublic`: others than this machine's
   * programs read it.
   */
  report(
    id: string,
    request: ClientRequest,
    response: ClientResponse,
    isPublic: boolean,
  ): Promise<void>;
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
export function isWaitingCall(passage: Passage, ownNames: OwnNames): boolean {
  const { request, path } = passage;
  if (request.headers["prefer"] !== undefined && prefersAsync(request.headers["prefer"]))
    return true;
  if (path.startsWith(callsPath)) return true;
  return path.startsWith("/async") && isOwnHost(passage, ownNames);
}

/** Further hosts of the gateway itself, in lower case and without a port: of its Service in a cluster. */
export type OwnNames = ReadonlySet<string>;

/** Whether the request is to the gateway itself, and its path says for which Function it is. */
function isOwnHost({ host, key }: Passage, ownNames: OwnNames): boolean {
  if (key === "" && ownHost.test(host)) return true;
  return ownNames.size > 0 && ownNames.has(host.toLowerCase().replace(/:\d{1,5}$/, ""));
}

/** Whether it asks the gateway itself for a call's result. */
export const isReport = (passage: Passage, ownNames: OwnNames): boolean =>
  isOwnHost(passage, ownNames) && passage.path.startsWith(callsPath);

/**
 * From here on, a request to the gateway's own host whose path names a Function is treated as one to that Function's host, so
 * that the same protection applies.
 */
export function nameFunction(passage: Passage, ownNames: OwnNames): void {
  const named = isOwnHost(passage, ownNames) ? readPath(passage.path) : undefined;
  if (!named) return;
  passage.key = named.key;
  passage.path = named.path;
  passage.host = `${named.key.split("/").reverse().join(".")}.svc.cluster.local`;
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
    const isPublic = passage.isPublic || passage.exposed !== undefined;
    await acceptor.report(id, request, response, isPublic);
    return undefined;
  }
  if (passage.key === "" && !passage.exposed) return unknownHost(passage.host);
  const refused = route(passage, deps);
  if (refused && refused !== "handled") return refused;
  const key = passage.exposed ? passage.route?.key : passage.key;
  const { host, path, isSecure, requestId } = passage;
  const changes = passage.exposed?.requestHeaders;
  const forwarding = { host, isSecure, requestId, changes, trust: false };
  const headers = requestHeaders(request, forwarding);
  const { exposed, isPublic } = passage;
  const isOfMachine = !exposed && !isPublic;
  const owner = key ?? "";
  const mayCall = (service: ObjectKey) => maySend(owner, service, passage, deps);
  const { takeMemory, giveBack } = memoryOf(owner, deps);
  response.once("close", giveBack);
  const call = { request, response, key: owner, path, headers, mayCall, isOfMachine, takeMemory };
  await acceptor.accept(call);
  return undefined;
}

/** Bodies are read as a whole, and count with those of requests that do not wait. */
function memoryOf(owner: string, { memory }: RequestDeps) {
  let taken = 0;
  let isOver = false;
  return {
    takeMemory: (bytes: number): boolean => {
      if (isOver || !memory.take(owner, bytes)) return false;
      taken += bytes;
      return true;
    },
    giveBack: (): void => {
      isOver = true;
      memory.give(owner, taken);
      taken = 0;
    },
  };
}

/** As for requests of its client and of the Function: a result must not reach what neither of them could. */
async function maySend(
  owner: ObjectKey,
  service: ObjectKey,
  passage: Passage,
  deps: RequestDeps,
): Promise<boolean> {
  const { routes, callers } = deps;
  const { request, isExternal } = passage;
  if (isExternal && !isOpen(service, passage, deps)) return false;
  const connection = request.connectionSocket ?? request.socket;
  const key = routes.find(service)?.key ?? service;
  const may = isExternal ? callers.mayCallFront(key, connection) : callers.mayCall(key, connection);
  return (await may) && callers.maySend(routes.find(owner)?.key ?? owner, key);
}

/** Whether a request to this Service's own host would be passed on. */
function isOpen(
  service: ObjectKey,
  { isSecure }: Passage,
  { routes, exposure }: RequestDeps,
): boolean {
  const found = routes.find(service);
  if (!found || found.isClusterLocal || isSecure || exposure?.functionHosts === false) return false;
  return exposure?.hosts.guardOf(found.key) === undefined;
}

function readPath(path: string): { key: ObjectKey; path: string } | undefined {
  const found = (asyncPath.exec(path) ?? openFaas.exec(path))?.groups;
  if (!found) return undefined;
  const { namespace = "default", name = "", rest = "" } = found;
  return { key: `${namespace}/${name}`, path: rest.startsWith("/") ? rest : `/${rest}` };
}
