import { type Readable } from "node:stream";
import { limitReached, NotStarted, signalGroup, startProgram } from "@spry/kube";
import { GitError, readFailure, SourceRefused, unreachableServer } from "./git-error.ts";

export interface GitRun {
  cwd: string;
  /** All of it: nothing is inherited. */
  env: Record<string, string>;
  timeoutMs: number;
  /** What is said when that has passed. */
  overdue?: string;
  /** More than this is a failure. */
  maxOutputBytes?: number;
  /** Of address space, for each process; only where the system's shell can bound it. Default 2 GiB. */
  maxMemoryBytes?: number;
  signal?: AbortSignal | undefined;
  /** Texts that no error may show. */
  secrets?: readonly string[];
}

const defaultMaxOutput = 4 * 1024 * 1024;
const maxErrors = 16 * 1024;
const notInstalled = "git cannot be run: is it installed?";
/** Enough for any ordinary repository with the settings of a session, and little compared to a machine's memory. */
const defaultMaxMemory = 2 * 1024 ** 3;

/** Runs `git <args>`; see `runProgram`. */
export const runGit = (args: readonly string[], run: GitRun): Promise<string> =>
  runProgram(["git", ...args], run);

/**
 * Runs Git, or a program of Git's kind, to its end, and returns what it wrote. When it fails, takes too long, writes too much or is
 * aborted, everything that it started ends with it, and a `GitError` says why.
 */
export async function runProgram(command: readonly string[], run: GitRun): Promise<string> {
  const { cwd, env, timeoutMs, maxOutputBytes = defaultMaxOutput, signal, secrets = [] } = run;
  const { maxMemoryBytes = defaultMaxMemory } = run;
  if (signal?.aborted) throw stopped(signal);
  // Its own process group: Git works through children, and they must not outlive it.
  const child = await startProgram(...bounded(command, maxMemoryBytes), {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  }).catch(notStarted);
  const [stdout, stderr] = [child.stdout as Readable, child.stderr as Readable];
  return new Promise((resolve, reject) => {
    const output: Buffer[] = [];
    let size = 0;
    let errors = "";
    let ended: GitError | undefined;

    const end = (error: GitError) => {
      ended ??= error;
      signalGroup(child.pid, "SIGKILL");
    };
    const onAbort = () => end(stopped(signal));
    const timer = setTimeout(() => {
      end(new GitError("temporary", run.overdue ?? unreachableServer));
    }, timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });

    stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutputBytes)
        end(
          new SourceRefused(
            `git's output exceeded its limit (${Math.round(maxOutputBytes / 1024 ** 2)} MiB): too many files`,
          ),
        );
      else output.push(chunk);
    });
    stderr.on("data", (chunk: Buffer) => {
      errors = tail(errors + chunk.toString());
    });
    // Of a signal that could not be sent.
    child.on("error", () => {});
    child.once("close", (code) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      if (code === 127) ended ??= new GitError("temporary", notInstalled);
      if (!ended && code === 0) return resolve(Buffer.concat(output).toString());
      const { failure, message } = readFailure(withoutSecrets(errors, secrets));
      reject(ended ?? new GitError(failure, message));
    });
  });
}

/** Git keeps all names that a server sends in memory, and a server may never end. */
function bounded(
  command: readonly string[],
  maxMemoryBytes: number,
): [file: string, args: string[]] {
  const [file = "", ...args] = command;
  if (process.platform !== "linux") return [file, args];
  const script = `ulimit -v ${Math.floor(maxMemoryBytes / 1024)} 2>/dev/null; exec "$@"`;
  return ["/bin/sh", ["-c", script, "sh", ...command]];
}

function stopped(signal: AbortSignal | undefined): GitError {
  const { reason } = signal ?? {};
  return reason instanceof GitError ? reason : new GitError("temporary", "git was stopped");
}

/** A limit of the machine is named; the next attempt may succeed. */
function notStarted(cause: unknown): never {
  const isLimit = cause instanceof NotStarted && limitReached(cause) !== undefined;
  throw new GitError("temporary", isLimit ? cause.message : notInstalled, { cause });
}

/** Whole lines, so that no half of a secret is left, which would not be recognised. */
function tail(text: string): string {
  if (text.length <= maxErrors) return text;
  const end = text.slice(-maxErrors);
  const lineEnd = end.indexOf("\n");
  return lineEnd < 0 ? "" : end.slice(lineEnd + 1);
}

/** A server can send back what it was sent. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (shown, secret) => (secret ? shown.replaceAll(secret, "***") : shown),
    text,
  );
}
