/** Which repository a `.gitmodules` means, and what may be shown to its server. */
import { type GitCredentials } from "./credentials.ts";
import { GitError } from "./git-error.ts";
import { parseRepositoryUrl, type RepositoryUrl } from "./repository-url.ts";

/**
 * The repository of a submodule. `./x` and `../x` are relative to the URL of the repository that has it (git-submodule(1)). Throws a
 * `GitError` for anything but https and ssh, and for http below a repository that is not fetched by http itself.
 */
export function submoduleUrl(url: string, parent: RepositoryUrl): RepositoryUrl {
  const found = parseRepositoryUrl(/^\.\.?\//.test(url) ? relativeTo(parent.url, url) : url);
  if (isPlain(found) && !isPlain(parent))
    throw new GitError("unrecoverable", "its URL has the scheme http: use https or ssh");
  return found;
}

/** Credentials are for the host that they were given for, by the way that they were given for. */
export function credentialsFor(
  repository: RepositoryUrl,
  { url, credentials }: { url: string; credentials?: GitCredentials | undefined },
): GitCredentials | undefined {
  return isSameServer(parseRepositoryUrl(url), repository) ? credentials : undefined;
}

/** Whether two URLs lead to one server by one way: what is known of the one holds for the other. */
export const isSameServer = (one: RepositoryUrl, other: RepositoryUrl): boolean =>
  one.transport === other.transport &&
  one.origin === other.origin &&
  one.host === other.host &&
  one.port === other.port;

const isPlain = ({ url }: RepositoryUrl): boolean => url.startsWith("http:");

/** Each `../` takes a part of the path away, and none of the host. */
function relativeTo(parent: string, url: string): string {
  const [, start = "", path = ""] =
    /^(\w+:\/\/[^/]+\/|[^/:]+:)(.*)$/.exec(parent.replace(/\/+$/, "")) ?? [];
  const parts = path.split("/");
  for (const part of url.split("/")) {
    if (part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined)
      throw new GitError("unrecoverable", "its URL leads above the host of the repository");
  }
  return start + parts.join("/");
}
