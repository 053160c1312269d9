import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { constants } from "node:os";
import { PassThrough, type Readable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { realArguments } from "./exec-arguments.ts";
import { signalGroup } from "./processes.ts";

/** From util-linux: runs a command on a terminal of its own. A terminal needs a native call. */
const scriptProgram = "/usr/bin/script";
const resizePollMs = 20;
const resizeAttempts = 50;

const noTerminal =
  "warning: this machine has no script(1) of util-linux: the command runs without a terminal\r\n";

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
      for (const group of [...childrenOf(child.pid), child.pid ?? 0]) signalGroup(group, "SIGKILL");
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

function hasTerminals(): boolean {
  return process.platform === "linux" && existsSync(scriptProgram);
}

/** `-e` hands the exit code on, `-f` does not hold output back. */
function terminalCommand(argv: readonly string[]): string[] {
  const words = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  return [scriptProgram, "-qefc", `exec ${words.join(" ")}`, "/dev/null"];
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

/** The terminal is that of script's child, which is there a moment later; the kernel tells the rest. */
function resizeTerminal(
  script: number,
  size: { columns: number; rows: number },
  clock: Clock,
  attempts = resizeAttempts,
): void {
  const terminal = childrenOf(script).map(terminalOf).find(Boolean);
  if (terminal) {
    const args = ["-F", terminal, "cols", String(size.columns), "rows", String(size.rows)];
    execFile("stty", args, () => {});
  } else if (attempts > 0) {
    clock.after(resizePollMs, () => resizeTerminal(script, size, clock, attempts - 1));
  }
}

function terminalOf(pid: number): string | undefined {
  try {
    const file = readlinkSync(`/proc/${pid}/fd/0`);
    return /^\/dev\/pts\/\d+$/.test(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

function childrenOf(pid: number | undefined): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
