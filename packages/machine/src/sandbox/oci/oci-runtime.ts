import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { listNames } from "../records.ts";

const deleteTimeoutMs = 10_000;

/**
 * An OCI runtime's command line, as runc has it (opencontainers/runc, `man/`; 1.1 or later, because
 * of `run --keep`). Its state is kept under the data directory, so that two platforms never meet.
 */
export class OciRuntime {
  readonly file: string;
  readonly #stateDir: string;

  constructor(file: string, stateDir: string) {
    this.file = file;
    this.#stateDir = stateDir;
  }

  /**
   * Runs in the foreground, and leaves state and cgroup to be looked at when the container has ended. `descriptors`: how many,
   * from 3 on, the container gets.
   */
  run(
    id: string,
    files: { bundle: string; pidFile: string; errorFile: string },
    descriptors = 1,
  ): string[] {
    const { bundle, pidFile, errorFile } = files;
    const global = [
      this.file,
      "--root",
      this.#stateDir,
      "--log",
      errorFile,
      "--log-format",
      "json",
    ];
    const preserve = ["--preserve-fds", String(descriptors)];
    const own = ["run", "--keep", ...preserve, "--bundle", bundle, "--pid-file", pidFile];
    return [...global, ...own, id];
  }

  exec(id: string, pidFile: string, argv: readonly string[], { tty = false } = {}): string[] {
    const terminal = tty ? ["--tty", "--env", "TERM=xterm"] : [];
    return ["--root", this.#stateDir, "exec", "--pid-file", pidFile, ...terminal, id, ...argv];
  }

  /** Forgets a container that has ended. */
  async forget(id: string): Promise<void> {
    await rm(path.join(this.#stateDir, id), { recursive: true, force: true });
  }

  /** Ends a container and forgets it. One that was only half made is forgotten too. */
  async delete(id: string): Promise<void> {
    const args = ["--root", this.#stateDir, "delete", "--force", id];
    const options = { timeout: deleteTimeoutMs, env: {} };
    await promisify(execFile)(this.file, args, options).catch(() => {});
    await this.forget(id);
  }

  /** Every container that the runtime knows of, also ended ones. */
  list(): string[] {
    return listNames(this.#stateDir);
  }
}

/** The runtime's program on this machine's `PATH`. */
export function findRuntime(searchPath = process.env["PATH"] ?? ""): string | undefined {
  // Administrators' directories are often not on an ordinary PATH.
  const dirs = [
    ...searchPath.split(":").filter((dir) => path.isAbsolute(dir)),
    "/usr/sbin",
    "/usr/local/sbin",
  ];
  const candidates = ["runc", "crun"].flatMap((name) => dirs.map((dir) => path.join(dir, name)));
  return candidates.find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
