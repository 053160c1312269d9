/**
 * What a commit only refers to: files that Git LFS keeps, and other repositories. Nothing of it stays away without a word: what cannot
 * be fetched is named, and what is more than a source may have fails.
 */
import { type GitCredentials } from "./credentials.ts";
import { SourceRefused } from "./git-error.ts";
import { type GitSession } from "./git-session.ts";
import { type RepositoryUrl } from "./repository-url.ts";
import { type SessionRequest } from "./redirects.ts";
import { filesIn, megabytes, sourceLimits } from "./source-size.ts";
import { fetchLfsFiles } from "./lfs/lfs-files.ts";
import { fetchSubmodules } from "./submodules.ts";

/** Files of one commit that are in a directory. */
export interface CheckedOut {
  /** As it was named: what is relative is relative to it, whatever it redirects to. */
  repository: RepositoryUrl;
  commit: string;
  directory: string;
  /** Folder of the repository that the directory stands for, from the root; empty for the root. */
  prefix: string;
  /** Whether a path of the repository is among the files. */
  has: (path: string) => boolean;
  session: GitSession;
  git: (
    args: string[],
    options?: { maxOutputBytes?: number; env?: Record<string, string> },
  ) => Promise<string>;
  /** How many repositories it is inside of. */
  depth: number;
}

/** One source, with all repositories that are in it. */
export interface Completion {
  /** The URL and credentials are those of the repository that the Function names. */
  request: SessionRequest & {
    url: string;
    credentials?: GitCredentials | undefined;
    report?: (line: string) => void;
    timeoutMs?: number;
  };
  /** The directory that a build reads. */
  directory: string;
  /** How many submodules there were so far. */
  modules: number;
  /** A sentence for each thing that is not there. */
  leftOut: string[];
  /** Fetches a commit of another repository, with all that it refers to. */
  fetchModule(module: {
    url: string;
    commit: string;
    destination: string;
    credentials: GitCredentials | undefined;
    depth: number;
  }): Promise<void>;
}

export async function completeSource(part: CheckedOut, completion: Completion): Promise<void> {
  await fetchLfsFiles(part, completion);
  await fetchSubmodules(part, completion);
}

export function leaveOut({ leftOut, request }: Completion, sentence: string): void {
  leftOut.push(sentence);
  request.report?.(`warning: ${sentence}`);
}

/** Throws a `SourceRefused` where a source has more than a build takes, `more` bytes that are still to come included. */
export function assertSize({ directory }: Completion, what: string, more = 0): void {
  const files = filesIn(directory);
  const bytes = files.reduce((sum, { size }) => sum + size, more);
  const { files: maxFiles, bytes: maxBytes } = sourceLimits;
  if (files.length <= maxFiles && bytes <= maxBytes) return;
  const has = files.length > maxFiles ? `more than ${maxFiles} files` : megabytes(bytes);
  throw new SourceRefused(
    `with ${what} the source has ${has}: at most ${maxFiles} files and ${megabytes(maxBytes)} are possible`,
  );
}
