import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { type Clock, tryProgram } from "@spry/kube";
import { innerPid } from "./processes.ts";

/** From util-linux: runs a command on a terminal of its own. A terminal needs a native call. */
const scriptProgram = "/usr/bin/script";
const resizePollMs = 20;
const resizeAttempts = 50;

export const noTerminal =
  "warning: this machine has no script(1) of util-linux: the command runs without a terminal\r\n";

export interface TerminalSize {
  columns: number;
  rows: number;
}

export function hasTerminals(): boolean {
  return process.platform === "linux" && existsSync(scriptProgram);
}

/**
 * The command that runs another one on a terminal, as its parent; the other one has a session of its own. `-e` passes
 * the exit code on, `-f` flushes output at once.
 */
export function terminalCommand(argv: readonly string[]): string[] {
  const words = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  return [scriptProgram, "-qefc", `exec ${words.join(" ")}`, "/dev/null"];
}

/** The terminal is that of a descendant, which exists a moment later; the kernel notifies it of the rest. */
export function resizeTerminal(
  ancestor: number,
  size: TerminalSize,
  clock: Clock,
  attempts = resizeAttempts,
): void {
  const terminal = descendantsOf(ancestor).map(terminalOf).find(Boolean);
  if (terminal) {
    const args = ["-F", terminal, "cols", String(size.columns), "rows", String(size.rows)];
    const resizing = tryProgram("stty", args, { stdio: "ignore" });
    if (!("failure" in resizing)) resizing.unref();
  } else if (attempts > 0) {
    clock.after(resizePollMs, () => resizeTerminal(ancestor, size, clock, attempts - 1));
  }
}

/** The leaders of the sessions on terminals below a process. */
export function terminalSessions(ancestor: number): number[] {
  return descendantsOf(ancestor).filter((pid) => terminalOf(pid) !== undefined);
}

function terminalOf(pid: number): string | undefined {
  try {
    const file = readlinkSync(`/proc/${pid}/fd/0`);
    return /^\/dev\/pts\/\d+$/.test(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** Children, and theirs: between may be a shell that waits for an exit code. */
function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...childrenOf(child)]);
}

/** The first process of a PID namespace among those a process has started, or they. */
export function firstOfNamespace(ancestor: number): number | undefined {
  for (const child of childrenOf(ancestor)) {
    const first = innerPid(child) === 1 ? child : firstOfNamespace(child);
    if (first !== undefined) return first;
  }
  return undefined;
}

export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
