import { spawn } from "node:child_process";
import { type LayerFile } from "../layer.ts";
import { type Component } from "./attestations.ts";

/** What a source says about its dependencies, and how they are installed. */
export interface Installation {
  /** All that determines the result besides runtime and platform: it names the layer. As JSON. */
  inputs: unknown;
  /** Installs in a directory of this build alone. Throws a `UserError` for what the author must change. */
  run(scratch: string): Promise<InstalledFiles>;
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
  env?: Readonly<Record<string, string>>;
}

export interface InstallerEnd {
  /** Exit code, or the signal's name. */
  code: number | string;
  /** The end of both streams. */
  output: string;
}

const timeoutMs = 15 * 60_000;
const outputLimit = 64 * 1024;

/** Runs a package manager to its end, whatever that is; throws if it cannot be started. */
export function runInstaller(
  file: string,
  args: readonly string[],
  { directory, home, env }: InstallerRun,
): Promise<InstallerEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: directory,
      env: { ...foreignEnvironment(), HOME: home, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-outputLimit);
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    const stop = () => child.kill();
    process.once("SIGTERM", stop);
    child.once("error", (cause) => reject(new Error(`starting ${file}`, { cause })));
    child.once("close", (code, signal) => {
      process.removeListener("SIGTERM", stop);
      resolve({ code: code ?? signal ?? "no code", output });
    });
  });
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

/** A line of somebody's output for everybody to read: no password in a URL, and not too long. */
export function shownLine(line: string): string {
  return line.replace(/(:\/\/)[^/@\s]+@/g, "$1").slice(0, 300);
}
