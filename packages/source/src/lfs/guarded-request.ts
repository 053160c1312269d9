/** HTTP requests to servers that a repository names: each address, also that of a redirect, is looked at as Git's own are. */
import { lookup as systemLookup } from "node:dns";
import { existsSync, readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import * as tls from "node:tls";
import { GitError, unreachableServer } from "../git-error.ts";
import { type GitServer, type LocateOptions, locateServer } from "../git-server.ts";
import { parseRepositoryUrl } from "../repository-url.ts";

export interface GuardedOptions extends LocateOptions {
  /** Whether http may be used: where the repository itself is fetched by it. */
  mayBePlain: boolean;
  signal?: AbortSignal | undefined;
}

export interface GuardedRequest {
  url: string;
  method: "GET" | "POST";
  /** Sent to this URL's origin only. */
  headers: Record<string, string>;
  body?: string;
}

const maxRedirects = 5;
const idleMs = 30_000;

/** Resolves to the response that is no redirect. Throws a `GitError`; nothing has been connected to then that must not be. */
export async function guardedRequest(
  { url, method, headers, body }: GuardedRequest,
  options: GuardedOptions,
): Promise<http.IncomingMessage> {
  let current = url;
  const { origin } = repositoryAt(url, options);
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const target = repositoryAt(current, options);
    const server = await locateServer(target, options);
    const own = target.origin === origin ? headers : withoutSecrets(headers);
    const response = await send(
      new URL(target.url),
      server,
      { method, headers: own, body },
      options,
    );
    const { location } = response.headers;
    if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0)) return response;
    response.destroy();
    if (location === undefined || !URL.canParse(location, current))
      throw new GitError("temporary", "the LFS server redirected to nowhere");
    current = new URL(location, current).href;
  }
  throw new GitError("temporary", `the LFS server redirected more than ${maxRedirects} times`);
}

function repositoryAt(url: string, { mayBePlain }: GuardedOptions) {
  const found = parseRepositoryUrl(url);
  if (found.transport !== "http" || (!mayBePlain && found.url.startsWith("http:")))
    throw new GitError("unrecoverable", "its URL is not an https URL");
  return found;
}

const withoutSecrets = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^(?:accept|content-type)$/i.test(name)),
  );

function send(
  url: URL,
  { host, port, addresses, endpoints: [endpoint] = [] }: GitServer,
  {
    method,
    headers,
    body,
  }: { method: string; headers: Record<string, string>; body?: string | undefined },
  { environment = process.env, signal }: GuardedOptions,
): Promise<http.IncomingMessage> {
  const isSecure = url.protocol === "https:";
  const lookup: LookupFunction = (name, lookupOptions, callback) => {
    // Of a proxy.
    if (name !== host || addresses.length === 0) return systemLookup(name, lookupOptions, callback);
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    if (lookupOptions.all) callback(null, found);
    else callback(null, first?.address ?? "", first?.family);
  };
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(
        signal?.reason instanceof GitError
          ? signal.reason
          : new GitError("temporary", unreachableServer, { cause }),
      );
    try {
      const agentOptions = endpoint ? {} : { proxyEnv: environment };
      const agent = isSecure ? new https.Agent(agentOptions) : new http.Agent(agentOptions);
      const request = (isSecure ? https : http).request(
        {
          agent,
          lookup,
          method,
          hostname: endpoint?.host ?? host,
          port: endpoint?.port ?? port,
          path: url.pathname + url.search,
          headers: { ...headers, host: url.host, "user-agent": "git-lfs/3 (spry)" },
          ...(isSecure && {
            ca: authorities(environment),
            ...(isIP(host) ? {} : { servername: host }),
          }),
          ...(signal && { signal }),
        },
        resolve,
      );
      request.setTimeout(idleMs, () => request.destroy(new Error("no answer")));
      request.on("error", fail).end(body);
    } catch (error) {
      // A header of the server's that is none.
      fail(error);
    }
  });
}

/** Those of Git: this machine's, and the ones that an operator has named for it. */
function authorities(environment: Readonly<Record<string, string | undefined>>): string[] {
  const files = [environment["GIT_SSL_CAINFO"], environment["SSL_CERT_FILE"]];
  const named = files.flatMap((file) =>
    file && existsSync(file) ? [readFileSync(file, "utf8")] : [],
  );
  return [...tls.getCACertificates("default"), ...tls.getCACertificates("system"), ...named];
}
