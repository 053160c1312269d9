/** Submodules come as they do with `git clone --recurse-submodules`. */
import { lstatSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { assertSize, type CheckedOut, type Completion, leaveOut } from "./complete-source.ts";
import { GitError, SourceRefused } from "./git-error.ts";
import { denied } from "./git-server.ts";
import { shownPath, sourceLimits } from "./source-size.ts";
import { credentialsFor, submoduleUrl } from "./submodule-url.ts";

/** Of a folder's files, with their names. */
const maxListBytes = 64 * 1024 ** 2;

/**
 * Fetches the submodules of what has been checked out, and theirs. One that another attempt would not bring either stays an empty
 * folder, with a warning. Throws a `GitError` where the next attempt may bring it, and a `SourceRefused` for too many and too much.
 */
export async function fetchSubmodules(part: CheckedOut, completion: Completion): Promise<void> {
  const { repository, directory, prefix, depth } = part;
  const modules = await modulesOf(part);
  if (modules.length === 0) return;
  const urls = await urlsOf(part);
  for (const { path, commit } of modules) {
    const full = prefix === "" ? path : `${prefix}/${path}`;
    const what = `submodule ${shownPath(full)}`;
    if (++completion.modules > sourceLimits.modules)
      throw new SourceRefused(`${what}: a source has at most ${sourceLimits.modules} submodules`);
    if (depth >= sourceLimits.depth)
      throw new SourceRefused(
        `${what}: more than ${sourceLimits.depth} repositories in each other`,
      );
    const destination = placeOf(directory, path, what);
    try {
      const url = urls.get(full);
      if (url === undefined) throw new GitError("unrecoverable", "it has no URL in .gitmodules");
      const found = submoduleUrl(url, repository);
      completion.request.report?.(`fetching ${what}`);
      await completion.fetchModule({
        url: found.url,
        commit,
        destination,
        credentials: credentialsFor(found, completion.request),
        depth: depth + 1,
      });
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      if (error instanceof SourceRefused)
        throw /submodule|LFS/.test(error.message)
          ? error
          : new SourceRefused(`${what}: ${error.message}`);
      const reason = reasonOf(error);
      if (!isLasting(error))
        throw new GitError("temporary", `${what}: ${reason}`, { cause: error.cause });
      rmSync(destination, { recursive: true, force: true });
      mkdirSync(destination);
      leaveOut(completion, `${what} is left out: ${reason}`);
      continue;
    }
    assertSize(completion, what);
  }
}

async function modulesOf({
  git,
  commit,
  prefix,
  has,
}: CheckedOut): Promise<{ path: string; commit: string }[]> {
  const listed = await git(["ls-tree", "-r", "-z", `${commit}:${prefix}`], {
    maxOutputBytes: maxListBytes,
  });
  return listed.split("\0").flatMap((line) => {
    const [, id, path] = /^160000 commit ([0-9a-f]+)\t([^]+)$/.exec(line) ?? [];
    return id && path && has(path) ? [{ path, commit: id }] : [];
  });
}

/** Path, from the repository's root → URL. Of this file Git's own reader makes nothing that runs. */
async function urlsOf({ git, commit }: CheckedOut): Promise<Map<string, string>> {
  const args = ["config", "--blob", `${commit}:.gitmodules`, "-z", "--get-regexp"];
  // It ends with 1 when there is none.
  const output = await git([...args, "^submodule\\..*\\.(path|url)$"]).catch((error: unknown) => {
    if (error instanceof SourceRefused) throw error;
    return "";
  });
  const found = new Map<string, { path?: string; url?: string }>();
  for (const entry of output.split("\0")) {
    const [, name = "", key, value] = /^submodule\.([^]*)\.(path|url)\n([^]*)$/.exec(entry) ?? [];
    if (key !== undefined) found.set(name, { ...found.get(name), [key]: value });
  }
  return new Map(
    [...found.values()].flatMap(({ path, url }) =>
      path !== undefined && url !== undefined ? [[path.replace(/\/+$/, ""), url] as const] : [],
    ),
  );
}

/** Git has made the folder; it writes through no link, and neither does this. */
function placeOf(directory: string, path: string, what: string): string {
  const place = join(directory, path);
  const parent = dirname(join(realpathSync(directory), path));
  const isFree = realpathSync(dirname(place)) === parent;
  if (isFree && !lstatSync(place, { throwIfNoEntry: false })) mkdirSync(place);
  if (!isFree || !lstatSync(place).isDirectory())
    throw new SourceRefused(`${what}: something else has the same path`);
  return place;
}

/** The Function's field is not what is wrong. */
const reasonOf = ({ message, cause }: GitError): string =>
  [message.replace("source.gitRepository.url", "its URL"), (cause as Error | undefined)?.message]
    .filter(Boolean)
    .join(": ");

const isLasting = ({ failure, message }: GitError): boolean =>
  failure === "authorization" || failure === "unrecoverable" || message === denied;
