/** Git follows no redirect by itself: where one leads is looked at like any other address. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { GitError } from "./git-error.ts";
import { GitSession, type GitSessionOptions } from "./git-session.ts";
import { locateServer, type ServiceLookup } from "./git-server.ts";
import { ServiceRelay } from "./service-relay.ts";
import { parseRepositoryUrl, type RepositoryUrl } from "./repository-url.ts";

export interface SessionRequest extends Omit<GitSessionOptions, "repository" | "server" | "proxy"> {
  /** See `locateServer`. */
  allowed: readonly string[];
  /** See `LocateOptions`. */
  services?: ServiceLookup | undefined;
  signal?: AbortSignal | undefined;
}

const maxRedirects = 5;
const timeoutMs = 30_000;
const service = "/info/refs";

/**
 * Does something in a session with the repository's server, and again with each server that it is sent on to. Throws a
 * `GitError`, also when a redirect leads to where Functions are not fetched from.
 */
export async function withRedirects<T>(
  repository: RepositoryUrl,
  request: SessionRequest,
  act: (session: GitSession, repository: RepositoryUrl) => Promise<T>,
): Promise<T> {
  let current = repository;
  for (let hop = 0; ; hop++) {
    const server = await locateServer(current, request);
    // The password is for the server that was named, and no other.
    const isSame = current.origin === repository.origin;
    const credentials = isSame ? request.credentials : undefined;
    await using relay = server.endpoints && (await ServiceRelay.open(server, server.endpoints));
    const proxy = relay?.url;
    using session = new GitSession({ ...request, credentials, repository: current, server, proxy });
    try {
      return await act(session, current);
    } catch (error) {
      if (!(error instanceof GitError) || error.failure !== "redirected") throw error;
      if (hop === maxRedirects)
        throw new GitError(
          "temporary",
          `the Git server redirected more than ${maxRedirects} times`,
        );
      current = await target(session, current, request.signal);
    }
  }
}

/** Asks once more, with what curl reads written down. */
async function target(
  session: GitSession,
  { url }: RepositoryUrl,
  signal: AbortSignal | undefined,
): Promise<RepositoryUrl> {
  const trace = join(session.directory, "trace");
  rmSync(trace, { force: true });
  const env = { GIT_TRACE_CURL: trace, GIT_TRACE_CURL_NO_DATA: "1" };
  await session.run(["ls-remote", "--", url, "HEAD"], { timeoutMs, signal, env }).catch(() => {});
  // Git that ends before it asks writes none.
  const seen = existsSync(trace) ? readFileSync(trace, "utf8") : "";
  const location = /Recv header: location: *(\S+)/i.exec(seen)?.[1] ?? "";
  const base = `${url.replace(/\/$/, "")}${service}`;
  const to = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (!to?.pathname.endsWith(service) || !/^https?:$/.test(to.protocol)) {
    throw new GitError("temporary", "the Git server redirected to a URL that is not a repository");
  }
  to.pathname = to.pathname.slice(0, -service.length);
  to.search = "";
  to.hash = "";
  return parseRepositoryUrl(to.href);
}
