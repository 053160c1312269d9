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
  const named = parseRepositoryUrl(url);
  const isSame =
    named.transport === repository.transport &&
    named.origin === repository.origin &&
    named.host === repository.host &&
    named.port === repository.port;
  return isSame ? credentials : undefined;
}

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
