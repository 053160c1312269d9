import { type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { type Clock, type NotStarted, tryProgram } from "@spry/kube";
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

const maxShown = 200;

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
  const child = tryProgram(program, args, {
    cwd: inside ? "/" : cwd,
    env: inside?.env ?? (command.tty ? { TERM: "xterm", ...env } : env),
    detached: true,
    stdio: [command.stdin ? "pipe" : "ignore", "pipe", "pipe"],
  });
  if ("failure" in child)
    return notStarted(child.failure.then((failure) => whyNot(failure, command.argv[0] ?? "")));
  const exited = exitOf(child, child.pid);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  // A command that stops reading is not a failure of the session.
  child.stdin?.on("error", () => {});
  const outputs = { stdout: kept(child.stdout), stderr: kept(child.stderr) };
  return {
    stdin: child.stdin ?? undefined,
    ...(command.tty ? { stdout: merged(outputs, onTerminal) } : outputs),
    exited,
    resize(size) {
      if (onTerminal && isRunning()) resizeTerminal(child.pid, size, clock);
    },
    kill() {
      // Later the number may be another process's.
      if (!isRunning()) return;
      for (const group of [...childrenOf(child.pid), child.pid]) signalGroup(group, "SIGKILL");
    },
  };
}

function notFound(program: string): string {
  return `exec: ${shown(program)}: executable file not found in $PATH`;
}

const shown = (program: string): string => JSON.stringify(program.slice(0, maxShown));

function notStarted(why: string | Promise<string>): ExecProcess {
  const nothing = () => Readable.from([]);
  const exited = Promise.resolve(why).then((message): { exitCode: number } => {
    throw new Error(message);
  });
  exited.catch(() => {});
  return { stdout: nothing(), stderr: nothing(), exited, resize() {}, kill() {} };
}

/** Of the command, which a helper may have been to start. */
function whyNot({ code, message }: NotStarted, program: string): string {
  return code === "ENOENT" ? notFound(program) : `exec: ${shown(program)}: ${message}`;
}

function exitOf(child: ChildProcess, group: number): Promise<{ exitCode: number }> {
  return new Promise((resolve) => {
    // Of a signal that could not be sent.
    child.on("error", () => {});
    child.once("exit", (code, signal) => {
      // What it has left in the background would hold its streams open for ever.
      signalGroup(group, "SIGKILL");
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
