import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type CheckedOut, type Completion, completeSource } from "./complete-source.ts";
import { folderInCommit } from "./folder-in-commit.ts";
import { GitError, SourceRefused } from "./git-error.ts";
import { gitTree } from "./monorepo/git-tree.ts";
import { findMonorepo, type Monorepo } from "./monorepo/monorepo.ts";
import { type CommitQuestion, commitIn, isRefName } from "./resolve-commit.ts";
import { type ServiceLookup } from "./git-server.ts";
import { type GitSession, type GitSessionOptions } from "./git-session.ts";
import { withRedirects } from "./redirects.ts";
import { parseRepositoryUrl } from "./repository-url.ts";

export interface FetchRequest
  extends CommitQuestion, Omit<GitSessionOptions, "repository" | "server" | "proxy"> {
  /** See `LocateOptions`. */
  allowed: readonly string[];
  services?: ServiceLookup | undefined;
  /** Full id: this commit, and no other. */
  commit: string;
  /** Folder of the repository that is wanted, from its root. */
  baseDir: string;
  /** Directory for the folder's files; what is in it already stays. */
  destination: string;
  /** Directory for the npm packages next to the folder that it depends on; without it they are left out. */
  monorepo?: string | undefined;
  signal?: AbortSignal;
  /** Gets progress, a line each. */
  report?: (line: string) => void;
  timeoutMs?: number;
  /** Of what comes over the wire and is on disk for it. */
  maxBytes?: number;
}

export interface FetchedSource {
  /** When the commit was made, `2026-01-31T12:00:00Z`; undefined where it says no date. */
  committed: string | undefined;
  /** What is in the directory for it. */
  monorepo: Monorepo | undefined;
  /** What the commit refers to and is not there: a sentence for each thing. */
  leftOut: string[];
}

const defaultTimeoutMs = 10 * 60_000;
const defaultMaxBytes = 2 * 1024 ** 3;
const sizeCheckMs = 250;
/** Of the names of a folder's files, all together. */
const maxNamesBytes = 16 * 1024 ** 2;

/**
 * Puts the files of one folder of one commit into a directory, with as little sent as the server
 * knows how to: the commit without its history, of a folder only that folder's contents. Servers
 * that refuse this are asked for more, down to everything. Submodules and files in LFS come, too (`completeSource`).
 */
export async function fetchSource(request: FetchRequest): Promise<FetchedSource> {
  const { url } = request;
  const folder = normalBaseDir(request.baseDir);
  if (commitIn(request.commit) === undefined) {
    throw new GitError(
      "unrecoverable",
      `${JSON.stringify(request.commit.slice(0, 200))} is not a full commit id`,
    );
  }
  const completion: Completion = {
    request,
    directory: request.destination,
    modules: 0,
    leftOut: [],
    async fetchModule({ depth, ...module }) {
      const own = {
        ...request,
        ...module,
        reference: module.commit,
        baseDir: "",
        monorepo: undefined,
      };
      await fetchRepository(own, "", { completion, depth });
    },
  };
  const found = await fetchRepository({ ...request, url }, folder, { completion, depth: 0 });
  return { ...found, leftOut: completion.leftOut };
}

/** What belongs to all repositories of a source, and how many of them this one is inside of. */
interface Within {
  completion: Completion;
  depth: number;
}

type FetchedCommit = Omit<FetchedSource, "leftOut">;

const fetchRepository = (
  request: FetchRequest,
  folder: string,
  within: Within,
): Promise<FetchedCommit> =>
  withRedirects(parseRepositoryUrl(request.url), request, (session, repository) =>
    fetchFrom(request, repository.url, folder, session, within),
  );

async function fetchFrom(
  request: FetchRequest,
  url: string,
  folder: string,
  session: GitSession,
  within: Within,
): Promise<FetchedCommit> {
  const { report = () => {}, timeoutMs = defaultTimeoutMs, signal } = request;
  const places = [
    session.directory,
    request.destination,
    ...(request.monorepo ? [request.monorepo] : []),
  ];
  using bounds = boundsOf(places, timeoutMs, request.maxBytes ?? defaultMaxBytes, signal);
  let refusal: unknown;
  for (const attempt of attemptsFor(request, folder)) {
    try {
      report(`fetching ${attempt.what}`);
      return await checkOut(request, url, folder, attempt, session, bounds, within);
    } catch (error) {
      if (!(error instanceof GitError) || error.failure !== "refused") throw error;
      refusal = error;
      report(`the server refused that: ${error.message}`);
    }
  }
  const message = `commit ${request.commit} cannot be fetched from the repository`;
  throw new GitError("unrecoverable", message, { cause: refusal });
}

interface Attempt {
  what: string;
  /** Arguments of `git fetch`: options, and what is wanted. */
  options: string[];
  wanted: string[];
}

/** From what costs least to what every server can do. */
function attemptsFor({ commit, reference }: FetchRequest, folder: string): Attempt[] {
  const one = "--depth=1";
  const attempts: Attempt[] = [
    { what: `commit ${commit}`, options: [one], wanted: [commit] },
    {
      what: "all branches and tags",
      options: [],
      wanted: ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"],
    },
  ];
  if (commitIn(reference) === undefined && isRefName(reference)) {
    attempts.splice(1, 0, {
      what: "what the reference is now",
      options: [one],
      wanted: [reference],
    });
  }
  if (folder !== "") {
    attempts.unshift({
      what: `commit ${commit}, of folder ${JSON.stringify(folder)} only`,
      options: [one, "--filter=blob:none"],
      wanted: [commit],
    });
  }
  return attempts;
}

async function checkOut(
  { url: named, commit, destination, monorepo }: FetchRequest,
  url: string,
  baseDir: string,
  { options, wanted }: Attempt,
  session: GitSession,
  bounds: Bounds,
  { completion, depth }: Within,
): Promise<FetchedCommit> {
  const gitDir = join(session.directory, "repository");
  rmSync(gitDir, { recursive: true, force: true });
  const git: CheckedOut["git"] = async (args, options = {}) => {
    const output = await session.run(["--git-dir", gitDir, ...args], { ...bounds, ...options });
    bounds.check();
    return output;
  };
  const format = commit.length === 64 ? "sha256" : "sha1";
  // Without a template there are no hooks; "origin" is where missing content is fetched from later.
  await git(["init", "--quiet", "--bare", "--template=", `--object-format=${format}`]);
  await git(["config", "remote.origin.url", url]);
  const fetch = [
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
  ];
  await git([...fetch, ...options, "--", "origin", ...wanted]);
  // Objects are named by their content: what has this name is the commit.
  const kind = await git(["cat-file", "-t", commit]).catch(() => "");
  if (kind.trim() !== "commit") {
    throw new GitError(
      kind ? "unrecoverable" : "refused",
      `the server did not send commit ${commit}`,
    );
  }
  const folder = await folderInCommit(commit, baseDir, git);
  // Folders may hold themselves many times over. Counting them needs no memory, writing them does.
  await git(["ls-tree", "-r", "-z", "--name-only", `${commit}:${folder}`], {
    maxOutputBytes: maxNamesBytes,
  });
  mkdirSync(destination, { recursive: true });
  // Fetches what it lacks at once. It refuses paths that lead out or into a `.git`, writes through
  // no link, and leaves submodules as empty folders.
  const workTree = ["--work-tree", destination, "-c", "core.bare=false"];
  await git([...workTree, "read-tree", "--reset", "-u", `${commit}:${folder}`]);
  const around =
    monorepo === undefined
      ? undefined
      : await findMonorepo(folder, monorepo, gitTree({ commit, gitDir, git, maxNamesBytes }));
  const all = { repository: parseRepositoryUrl(named), commit, session, git, depth };
  await completeSource(
    { ...all, directory: destination, prefix: folder, has: () => true },
    completion,
  );
  if (monorepo !== undefined && around) {
    const packages = around.packages.map((each) => `${join(around.root, each)}/`);
    const has = (path: string) => packages.some((each) => path.startsWith(each));
    await completeSource({ ...all, directory: monorepo, prefix: "", has }, completion);
  }
  return { committed: dateOf(await git(["log", "-1", "--format=%ct", commit])), monorepo: around };
}

/** Seconds since 1970; a commit may say what it likes. */
function dateOf(seconds: string): string | undefined {
  const ms = /^\d{1,11}$/.test(seconds.trim()) ? Number(seconds) * 1000 : NaN;
  const text = ms < 253_402_300_800_000 ? new Date(ms).toISOString() : undefined;
  return text?.replace(".000Z", "Z");
}

/** `/a/./b/` is `a/b`, and the root is empty. */
export function normalBaseDir(baseDir: string): string {
  const parts = baseDir
    .trim()
    .split("/")
    .filter((part) => part !== "" && part !== ".");
  const wrong = parts.some((part) => part === ".." || part.toLowerCase() === ".git");
  if (!wrong && baseDir.length <= 4096 && !baseDir.includes("\0")) return parts.join("/");
  const shown = JSON.stringify(baseDir.slice(0, 200));
  throw new GitError("unrecoverable", `baseDir ${shown} is not a path inside a repository`);
}

interface Bounds extends Disposable {
  /** Aborted when they are exceeded. */
  signal: AbortSignal;
  check(): void;
  timeoutMs: number;
  overdue: string;
}

/** Ends what is under way when the directories grow beyond what they may. */
function boundsOf(
  places: readonly string[],
  timeoutMs: number,
  maxBytes: number,
  outer: AbortSignal | undefined,
): Bounds {
  const stop = new AbortController();
  const signal = outer ? AbortSignal.any([stop.signal, outer]) : stop.signal;
  const look = () => {
    if (places.reduce((sum, place) => sum + sizeOf(place), 0) <= maxBytes) return;
    const message = `the repository is larger than ${Math.round(maxBytes / 1024 ** 2)} MiB`;
    stop.abort(new SourceRefused(message));
  };
  const timer = setInterval(look, sizeCheckMs);
  const check = () => {
    look();
    signal.throwIfAborted();
  };
  const overdue = `fetching the source exceeded its time limit (${timeoutMs / 1000} s)`;
  return { signal, check, timeoutMs, overdue, [Symbol.dispose]: () => clearInterval(timer) };
}

/** Bytes of the few files that Git keeps; those that vanish meanwhile count nothing. */
function sizeOf(directory: string): number {
  let size = 0;
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) size += sizeOf(path);
      else size += lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
    }
  } catch {
    return size;
  }
  return size;
}
