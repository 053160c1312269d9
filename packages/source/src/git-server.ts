/**
 * Where a Git server is, and whether it may be asked: the author of a Function chooses the URL, and the program that
 * asks runs in a network that its author may have no access to. Names are resolved once, and Git is sent to what was looked at.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { GitError, unreachableServer } from "./git-error.ts";
import { isInternal, isWithin, networkOf } from "./internal-addresses.ts";
import { type RepositoryUrl } from "./repository-url.ts";

export interface GitServer {
  host: string;
  port: number;
  /** What the name was resolved to; empty where only a proxy can resolve it. */
  addresses: readonly string[];
  /** Of a Service: the addresses of what answers for it, each with its port. Git is led there. */
  endpoints?: readonly Endpoint[] | undefined;
}

export interface Endpoint {
  /** From a lookup, it may be a name; of a `GitServer`, it is an address that was looked at. */
  host: string;
  port: number;
}

/** Who answers for a Service, by its name in the cluster, where no name server knows it; undefined for what is not a Service. */
export type ServiceLookup = (
  host: string,
  port: number,
) => Promise<readonly Endpoint[] | undefined>;

export interface LocateOptions {
  /** Host names and networks of internal servers that may be asked nevertheless, as the `Serverless` object has them. */
  allowed: readonly string[];
  environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Default: the name server knows all names. */
  services?: ServiceLookup | undefined;
}

/** What is said of a server that is not asked. */
export const denied =
  "source.gitRepository.url leads to an address that Functions are not fetched from: loopback, link-local, " +
  "or this platform itself; an operator can allow it by spec.gitAllowedAddresses of the Serverless object";

/**
 * Resolves the server's name. Throws a `GitError` when one of its addresses is internal and not among `allowed`. Nothing has
 * been connected to then.
 */
export async function locateServer(
  { host, port }: RepositoryUrl,
  { allowed, environment = process.env, services }: LocateOptions,
): Promise<GitServer> {
  const named = await services?.(host, port);
  if (named?.length === 0) throw new GitError("temporary", unreachableServer);
  const endpoints = named && (await resolved(named));
  const addresses = endpoints
    ? [...new Set(endpoints.map((each) => each.host))]
    : await addressesOf(host, hasProxy(environment));
  if (!isAllowed(host, addresses, allowed)) throw new GitError("temporary", denied);
  return { host, port, addresses, endpoints };
}

/** What is connected to is what was looked at: a name could lead elsewhere the next time. */
async function resolved(endpoints: readonly Endpoint[]): Promise<Endpoint[]> {
  const found = endpoints.map(async ({ host, port }) =>
    (await addressesOf(host, false)).map((address) => ({ host: address, port })),
  );
  return (await Promise.all(found)).flat();
}

/** Why an entry of the operator's list cannot be used; undefined when it can. */
export function allowedAddressProblem(entry: string): string | undefined {
  const isName =
    /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/i.test(
      entry,
    );
  // What looks like an address must be one.
  if (networkOf(entry) || (isName && !/^[\d.]+$/.test(entry))) return undefined;
  return "is not a host name, an IP address or a network such as 10.0.0.0/8";
}

function isAllowed(
  host: string,
  addresses: readonly string[],
  allowed: readonly string[],
): boolean {
  if (allowed.some((entry) => entry.toLowerCase() === host)) return true;
  const networks = allowed.flatMap((entry) => networkOf(entry) ?? []);
  // One internal address among others is enough: which of them is used is not for the name's owner to choose.
  return addresses.every((address) => !isInternal(address) || isWithin(address, networks));
}

async function addressesOf(host: string, isProxied: boolean): Promise<string[]> {
  if (isIP(host)) return [host];
  // These never leave the machine, whatever a name server says (RFC 6761 section 6.3).
  if (/(?:^|\.)localhost$/.test(host)) return ["127.0.0.1", "::1"];
  try {
    // By the system's resolver, which also reads addresses in other forms: 0177.1, 2130706433.
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (cause) {
    if (isProxied) return [];
    throw new GitError("temporary", `Could not resolve host: ${host}`, { cause });
  }
}

function hasProxy(environment: Readonly<Record<string, string | undefined>>): boolean {
  return ["http_proxy", "https_proxy", "all_proxy"].some(
    (name) => environment[name] || environment[name.toUpperCase()],
  );
}
