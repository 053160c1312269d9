import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Clock, isOthersPid, startProgram, type StartedProgram } from "@spry/kube";
import { ContainerInput, type InputMode } from "../container-input.ts";
import { type ExitStatus } from "../sandbox.ts";
import { terminalCommand } from "../terminal.ts";
import { type Cgroups } from "./cgroups.ts";
import { type OciRuntime } from "./oci-runtime.ts";
import { type VolumeParts } from "./volume-parts.ts";

const startPollMs = 2;
/** What the runtime itself needs of the platform's environment. */
export const runtimePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Names the sandbox in the environment of runtimes, so that strays can be found. */
export const ownerVariable = "SPRY_OCI";

/** What all containers of a sandbox share. */
export interface OciContext {
  /** Value of `SPRY_OCI`. */
  owner: string;
  runtime: OciRuntime;
  cgroups: Cgroups;
  clock: Clock;
}

export interface OciLaunch {
  container: string;
  run: number;
  id: string;
  /** Holds `config.json`; the runtime's own files are put next to it. */
  bundle: string;
  parts: VolumeParts;
  logFile: string;
  /** Where the exit code is to be left for a later agent. */
  exitFile?: string | undefined;
  /** A file to be made for its input, and how that ends. */
  input?: { file: string; mode: InputMode } | undefined;
  /** The limit in cores that it gets once it has started, if it has another one before. */
  cpuLimit?: number | undefined;
  /** The runtime is on a terminal, which it hands on to the container's own. */
  tty?: boolean | undefined;
}

/** A shell outlives the platform and records the exit code, which only a parent learns. It is never signalled. */
const keepExitCode = `f=$1; shift; "$@"; c=$?; echo $c > "$f"; exit $c`;

/** The command, with its exit code in a file at the end. */
export function keepingExitCode(file: string, argv: readonly string[]): string[] {
  return ["/bin/sh", "-c", keepExitCode, "sh", file, ...argv];
}

/** Starts the runtime in a session of its own, with the container's streams. Throws `NotStarted`. */
export async function startRuntime(
  launch: OciLaunch,
  { runtime, owner }: OciContext,
): Promise<{ child: StartedProgram; input: ContainerInput | undefined }> {
  const { id, bundle, logFile, exitFile } = launch;
  const files = { pidFile: path.join(bundle, "pid"), errorFile: path.join(bundle, "errors.json") };
  const command = launch.parts.command(runtime.run(id, { bundle, ...files }), files.errorFile);
  const argv = launch.tty ? terminalCommand(command) : command;
  const [file = "", ...args] = exitFile === undefined ? argv : keepingExitCode(exitFile, argv);
  const stdin = launch.input && ContainerInput.create(launch.input.file, launch.input.mode);
  const log = openSync(logFile, "a", 0o600);
  try {
    const child = await startProgram(file, args, {
      cwd: bundle,
      env: { PATH: runtimePath, [ownerVariable]: owner },
      detached: true,
      stdio: [stdin?.descriptor ?? "ignore", log, log, "pipe"],
    });
    return { child, input: stdin?.input };
  } catch (error) {
    stdin?.input.close();
    throw error;
  } finally {
    closeSync(log);
    if (stdin) closeSync(stdin.descriptor);
  }
}

/** The pid of the container's program, once it runs; undefined when the runtime has ended without it. */
export function firstProcess(
  pidFile: string,
  ended: Promise<number>,
  clock: Clock,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const look = () => {
      const pid = readPid(pidFile);
      if (pid === undefined) cancel = clock.after(startPollMs, look);
      else resolve(pid);
    };
    let cancel = () => {};
    look();
    void ended.then(() => cancel()).then(() => resolve(readPid(pidFile)));
  });
}

export function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, "latin1"));
    return isOthersPid(pid) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** The runtime's last error, for example `exec: "x": executable file not found in $PATH`. */
export function startError(bundle: string, clock: Clock): ExitStatus {
  let message = "the OCI runtime could not start the container";
  try {
    const lines = readFileSync(path.join(bundle, "errors.json"), "utf8").trim().split("\n");
    const errors = lines
      .map((line) => JSON.parse(line) as { level: string; msg: string })
      .filter(({ level }) => level === "error" || level === "fatal");
    message = errors.at(-1)?.msg ?? message;
  } catch {
    // It has not even come that far.
  }
  message = message.replace(/^runc \w+ failed: |unable to start container process: /g, "");
  return { exitCode: 128, finishedAt: clock.now(), reason: "StartError", message };
}
