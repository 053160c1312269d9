import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { PassThrough, type Readable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { realArguments } from "./exec-arguments.ts";
import { signalGroup } from "./processes.ts";
import {
  childrenOf,
  hasTerminals,
  noTerminal,
  resizeTerminal,
  terminalCommand,
} from "./terminal.ts";

/** Runs a command in a container's surroundings, as a session of its own. */
export function execInProcessSandbox(
  command: ExecCommand,
  surroundings: { cwd: string; env: Record<string, string> },
  clock: Clock,
): ExecProcess {
  const { cwd, env } = surroundings;
  const argv = realArguments(command.argv, env["SPRY_ROOT"] ?? "");
  const onTerminal = command.tty && hasTerminals();
  const [program = "", ...args] = onTerminal ? terminalCommand(argv) : argv;
  const child = spawn(program, args, {
    cwd,
    env: command.tty ? { TERM: "xterm", ...env } : env,
    detached: true,
    stdio: [command.stdin ? "pipe" : "ignore", "pipe", "pipe"],
  });
  const exited = exitOf(child, command.argv[0] ?? "");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  // A command that stops reading is no failure of the session.
  child.stdin?.on("error", () => {});
  const outputs = { stdout: child.stdout as Readable, stderr: child.stderr as Readable };
  return {
    stdin: child.stdin ?? undefined,
    ...(command.tty ? { stdout: merged(outputs, onTerminal) } : outputs),
    exited,
    resize(size) {
      if (onTerminal && child.pid !== undefined && isRunning())
        resizeTerminal(child.pid, size, clock);
    },
    kill() {
      // Later the number may be somebody else's.
      if (!isRunning()) return;
      for (const group of [...childrenOf(child.pid ?? 0), child.pid ?? 0])
        signalGroup(group, "SIGKILL");
    },
  };
}

function exitOf(child: ChildProcess, program: string): Promise<{ exitCode: number }> {
  return new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return;
      const why = error.code === "ENOENT" ? "executable file not found in $PATH" : error.message;
      reject(new Error(`exec: ${JSON.stringify(program)}: ${why}`, { cause: error }));
    });
    child.once("exit", (code, signal) => {
      // What it has left in the background would hold its streams open for ever.
      signalGroup(child.pid ?? 0, "SIGKILL");
      resolve({ exitCode: signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 0) });
    });
  });
}

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
