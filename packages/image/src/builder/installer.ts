import { spawn } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { signalGroup } from "@spry/kube";
import { type LayerFile } from "../layer.ts";
import { type Component } from "./attestations.ts";
import { withoutSecrets } from "./secrets.ts";
import { UserError } from "./user-error.ts";

/** What a source says about its dependencies, and how they are installed. */
export interface Installation {
  /** All that determines the result besides runtime and platform: it names the layer. As JSON. */
  inputs: unknown;
  /** What may be in none of its files. */
  secrets: readonly string[];
  /**
   * Gets the packages into `directory`, which is this build's alone, with credentials and running nothing of
   * theirs. Returns whether `runScripts` is needed. Throws a `UserError` for what the author must change.
   */
  fetch(directory: string): Promise<boolean>;
  /** Runs what the packages want run, in the same directory, without credentials. Throws as `fetch` does. */
  runScripts(directory: string): Promise<void>;
  /** What is there then. Trusts nothing in the directory. */
  read(directory: string): InstalledFiles;
}

/** Files as they go into the layer. */
export interface InstalledFiles {
  files: LayerFile[];
  /** Bytes. */
  size: number;
  /** The packages that they are of. */
  components: Component[];
}

export interface InstallerRun {
  /** Working directory. */
  directory: string;
  /** Home and caches of the run, thrown away with the build. */
  home: string;
  /** Added to our own environment; undefined takes a variable away. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Texts that its output may not show. */
  secrets?: readonly string[];
  /** Gets its lines as they come. */
  onLine?: ((line: string) => void) | undefined;
}

export interface InstallerEnd {
  /** Exit code, or the signal's name. */
  code: number | string;
  /** The end of both streams. */
  output: string;
}

const timeoutMs = 15 * 60_000;
const outputLimit = 64 * 1024;
/** Of what an installation may have on disk while it runs, caches included: less than the volume of a build's Pod. */
const diskLimit = 4 * 1024 ** 3;
const firstLookMs = 1000;
const maxLineLength = 4096;

/**
 * Runs a package manager to its end, whatever that is. Throws if it cannot be started, and a
 * `UserError` if it fills the disk (`maxBytes`).
 */
export function runInstaller(
  file: string,
  args: readonly string[],
  { directory, home, env, secrets = [], onLine }: InstallerRun,
  maxBytes = diskLimit,
): Promise<InstallerEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: directory,
      env: { ...foreignEnvironment(), HOME: home, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: the scripts that it starts end with it.
      detached: true,
    });
    const fail = (cause: unknown) => reject(new Error(`starting ${file}`, { cause }));
    // Without a descriptor left it does not even have streams.
    if (child.pid === undefined) return void child.once("error", fail);
    let output = "";
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-outputLimit);
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", collect);
      if (onLine)
        stream.on(
          "data",
          lineReader((line) => onLine(withoutSecrets(line, secrets))),
        );
    }
    const { pid } = child;
    const terminate = () => signalGroup(pid, "SIGTERM");
    const kill = () => signalGroup(pid, "SIGKILL");
    process.once("SIGTERM", terminate).once("exit", kill);
    const timer = setTimeout(terminate, timeoutMs);
    let isTooLarge = false;
    const watch = watchSize([directory, home], maxBytes, () => {
      isTooLarge = true;
      kill();
    });
    child.once("error", fail);
    child.once("close", (code, signal) => {
      process.removeListener("SIGTERM", terminate).removeListener("exit", kill);
      clearTimeout(timer);
      watch.stop();
      const gib = (maxBytes / 1024 ** 3).toFixed(1);
      if (isTooLarge)
        reject(new UserError(`dependencies: more than ${gib} GiB during the installation`));
      else resolve({ code: code ?? signal ?? "no code", output: withoutSecrets(output, secrets) });
    });
  });
}

/** Complete lines, without those that are empty; of a longer one its end. */
function lineReader(onLine: (line: string) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let rest = "";
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(-maxLineLength);
    for (const line of lines) if (line.trim() !== "") onLine(shownLine(line.trimEnd()));
  };
}

/** Looks from time to time how much is in the directories; the more there is to look at, the more seldom. */
function watchSize(
  directories: readonly string[],
  limit: number,
  onExceeded: () => void,
): { stop(): void } {
  let timer: NodeJS.Timeout;
  const look = () => {
    const begin = performance.now();
    const seen = directories.reduce((sum, directory) => sum + sizeOf(directory), 0);
    if (seen > limit) return onExceeded();
    const cost = performance.now() - begin;
    timer = setTimeout(look, Math.max(firstLookMs, 20 * cost));
  };
  timer = setTimeout(look, firstLookMs);
  return { stop: () => clearTimeout(timer) };
}

/** Bytes of the files below; what vanishes meanwhile counts nothing. */
function sizeOf(directory: string): number {
  let size = 0;
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const file = join(directory, entry.name);
      if (entry.isDirectory()) size += sizeOf(file);
      else size += lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
    }
  } catch {
    return size;
  }
  return size;
}

/** The way to Services by name, for package registries behind one. */
const servicesVariable = "SPRY_SERVICES";

/** Install scripts are foreign code: they do not see where our own credentials are. */
function foreignEnvironment(): NodeJS.ProcessEnv {
  const environment = { ...process.env };
  for (const name of Object.keys(environment))
    if (name === "DOCKER_CONFIG" || (name.startsWith("SPRY_") && name !== servicesVariable))
      delete environment[name];
  return environment;
}

/** A line of another program's output for all users to read: without passwords in URLs, and not too long. */
export function shownLine(line: string): string {
  return line.replace(/(:\/\/)[^/@\s]+@/g, "$1").slice(0, 300);
}
