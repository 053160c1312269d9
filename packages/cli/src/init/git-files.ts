/** The files of a Git repository's folder, to begin with. Only this machine's own ways to log in are used: keys, and no password. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { messageOf } from "@spry/kube";
import { fetchSource, GitError, parseRepositoryUrl, resolveCommit } from "@spry/source";
import { UserError } from "../user-error.ts";

export interface GitPlace {
  url: string;
  /** Branch, tag or commit; undefined: the first of `main` and `master` that there is. */
  reference: string | undefined;
  /** Folder in the repository. */
  baseDir: string;
}

const usualBranches = ["main", "master"];

/** Puts them into a directory of its own, which `use` gets; it is removed afterwards. */
export async function withGitFiles<T>(place: GitPlace, use: (dir: string) => T): Promise<T> {
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-init-"));
  try {
    const destination = path.join(scratch, "files");
    // The user has chosen the server, wherever that is.
    const allowed = [parseRepositoryUrl(place.url).host, "127.0.0.0/8", "::1/128"];
    const { url, baseDir } = place;
    const commit = await commitOf(place, allowed);
    const request = { url, reference: commit, commit, baseDir, destination, allowed };
    const { leftOut } = await fetchSource(request);
    for (const sentence of leftOut) console.error(`warning: ${sentence}`);
    return use(destination);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new UserError(
      `${place.url} cannot be fetched: ${messageOf(error).replace("source.gitRepository.url", "the URL")}`,
      "check the URL, --reference and --base-dir; what needs a password is fetched with git clone",
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function commitOf({ url, reference }: GitPlace, allowed: string[]): Promise<string> {
  const options = { allowed, environment: process.env };
  if (reference !== undefined) return resolveCommit({ url, reference }, options);
  const [first = "", second = ""] = usualBranches;
  try {
    return await resolveCommit({ url, reference: first }, options);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return resolveCommit({ url, reference: second }, options).catch(() => {
      throw error;
    });
  }
}
