import { type GitCredentials } from "./credentials.ts";
import { GitError } from "./git-error.ts";
import { type LocateOptions } from "./git-server.ts";
import { withRedirects } from "./redirects.ts";
import { parseRepositoryUrl } from "./repository-url.ts";

/** Which commit is asked for. */
export interface CommitQuestion {
  url: string;
  /** Branch, tag, full ref name or full commit id. */
  reference: string;
  credentials?: GitCredentials | undefined;
}

const timeoutMs = 30_000;
/** Some ten thousand names take a few megabytes. */
const maxMemoryBytes = 512 * 1024 ** 2;

/** A full object name (SHA-1 or SHA-256) is its own answer. */
export function commitIn(reference: string): string | undefined {
  const text = reference.trim().toLowerCase();
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) ? text : undefined;
}

/**
 * Asks the server what the reference is now: one request for names, none for content. A branch goes
 * before a tag of the same name, and an annotated tag stands for its commit.
 */
export async function resolveCommit(
  { url, reference, credentials }: CommitQuestion,
  options: LocateOptions & { signal?: AbortSignal | undefined },
): Promise<string> {
  const commit = commitIn(reference);
  if (commit !== undefined) return commit;
  const repository = parseRepositoryUrl(url);
  const refs = candidates(reference.trim());
  const { signal, ...locate } = options;
  // The server's other names (of pull requests, say) can be many; they are only asked for in full.
  const kinds = refs.some((ref) => !/^refs\/(?:heads|tags)\//.test(ref))
    ? []
    : ["--heads", "--tags"];
  const patterns = refs.flatMap((ref) => [ref, `${ref}^{}`]);
  const bounds = { timeoutMs, maxMemoryBytes, signal };
  const found = await withRedirects(
    repository,
    { credentials, signal, ...locate },
    async (session, { url }) =>
      readRefs(
        await session.run(["ls-remote", "--quiet", ...kinds, "--", url, ...patterns], bounds),
      ),
  );
  for (const ref of refs) {
    const answer = found.get(`${ref}^{}`) ?? found.get(ref);
    if (answer !== undefined) return answer;
  }
  throw new GitError(
    "unrecoverable",
    `reference not found: ${shown(reference)} is neither a branch nor a tag of the repository, ` +
      "nor a full commit id",
  );
}

/** The full names that a reference can stand for, the first one first. */
function candidates(reference: string): string[] {
  if (!isRefName(reference)) {
    throw new GitError("unrecoverable", `reference ${shown(reference)} is not a valid name in Git`);
  }
  if (reference === "HEAD" || reference.startsWith("refs/")) return [reference];
  return [`refs/heads/${reference}`, `refs/tags/${reference}`];
}

/** What `git check-ref-format` allows. Among what it forbids are all the signs of patterns. */
export function isRefName(name: string): boolean {
  return (
    name.length <= 1024 &&
    // oxlint-disable-next-line no-control-regex -- Git forbids exactly those
    !/[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\.$|\/$|^\/|^-|^@$/.test(name) &&
    name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"))
  );
}

/** Lines of `<object>TAB<name>`. */
function readRefs(output: string): Map<string, string> {
  const refs = new Map<string, string>();
  for (const line of output.split("\n")) {
    const match = /^([0-9a-f]{40}|[0-9a-f]{64})\t(.+)$/.exec(line);
    if (match?.[1] && match[2]) refs.set(match[2], match[1]);
  }
  return refs;
}

const shown = (reference: string) => JSON.stringify(reference.slice(0, 200));
