import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { realArguments } from "./exec-arguments.ts";
import { isOnPath } from "./programs.ts";
import { signalGroup } from "./processes.ts";
import {
  childrenOf,
  hasTerminals,
  noTerminal,
  resizeTerminal,
  terminalCommand,
} from "./terminal.ts";

/** Where commands are run, and with what environment. */
export interface ExecPlace {
  cwd: string;
  env: Record<string, string>;
  /**
   * The command that runs another one within the container, where that is kept apart, and its environment; or why
   * there is none.
   */
  within?: (argv: readonly string[]) => { argv: string[]; env: Record<string, string> } | string;
}

/** Runs a command alongside a container's program, in a session of its own. */
export function execInProcessSandbox(
  command: ExecCommand,
  { cwd, env, within }: ExecPlace,
  clock: Clock,
): ExecProcess {
  const real = realArguments(command.argv, env["SPRY_ROOT"] ?? "");
  const own = command.tty && within && !env["TERM"] ? ["env", "TERM=xterm", ...real] : real;
  const wanted = real[0] ?? "";
  const inside = within?.(own);
  if (typeof inside === "string") return notStarted(`exec: ${inside}`);
  if (inside && !isOnPath(wanted, env["PATH"] ?? "")) return notStarted(notFound(wanted));
  const argv = inside?.argv ?? own;
  const onTerminal = command.tty && hasTerminals();
  const [program = "", ...args] = onTerminal ? terminalCommand(argv) : argv;
  const child = spawn(program, args, {
    cwd: inside ? "/" : cwd,
    env: inside?.env ?? (command.tty ? { TERM: "xterm", ...env } : env),
    detached: true,
    stdio: [command.stdin ? "pipe" : "ignore", "pipe", "pipe"],
  });
  const exited = exitOf(child, command.argv[0] ?? "");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  // A command that stops reading is not a failure of the session.
  child.stdin?.on("error", () => {});
  const outputs = { stdout: kept(child.stdout), stderr: kept(child.stderr) };
  return {
    stdin: child.stdin ?? undefined,
    ...(command.tty ? { stdout: merged(outputs, onTerminal) } : outputs),
    exited,
    resize(size) {
      if (onTerminal && child.pid !== undefined && isRunning())
        resizeTerminal(child.pid, size, clock);
    },
    kill() {
      // Later the number may be another process's.
      if (!isRunning()) return;
      for (const group of [...childrenOf(child.pid ?? 0), child.pid ?? 0])
        signalGroup(group, "SIGKILL");
    },
  };
}

function notFound(program: string): string {
  return `exec: ${JSON.stringify(program)}: executable file not found in $PATH`;
}

function notStarted(why: string): ExecProcess {
  const nothing = () => Readable.from([]);
  const exited = Promise.reject<{ exitCode: number }>(new Error(why));
  exited.catch(() => {});
  return { stdout: nothing(), stderr: nothing(), exited, resize() {}, kill() {} };
}

function exitOf(child: ChildProcess, program: string): Promise<{ exitCode: number }> {
  return new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return;
      const why =
        error.code === "ENOENT"
          ? notFound(program)
          : `exec: ${JSON.stringify(program)}: ${error.message}`;
      reject(new Error(why, { cause: error }));
    });
    child.once("exit", (code, signal) => {
      // What it has left in the background would hold its streams open for ever.
      signalGroup(child.pid ?? 0, "SIGKILL");
      resolve({ exitCode: signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 0) });
    });
  });
}

/** Node.js discards what a child has printed if it ends before it is read. */
const kept = (output: Readable | null): Readable =>
  output ? output.pipe(new PassThrough()) : Readable.from([]);

function merged({ stdout, stderr }: Record<"stdout" | "stderr", Readable>, onTerminal: boolean) {
  const output = new PassThrough();
  if (!onTerminal) output.write(noTerminal);
  let open = 2;
  for (const stream of [stdout, stderr]) {
    stream.pipe(output, { end: false });
    stream.once("close", () => --open === 0 && output.end());
  }
  return output;
}
