import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { type Readable, type Writable } from "node:stream";
import { type Clock } from "@spry/kube";
import { ContainerInput, type InputMode } from "./container-input.ts";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { execInProcessSandbox } from "./process-exec.ts";
import { isAlive, readStat, signalGroup, signalGroupOf } from "./processes.ts";
import { type ProcessRecord } from "./records.ts";
import { type ExecResult, type ExitStatus, type SandboxContainer } from "./sandbox.ts";
import {
  hasTerminals,
  noTerminal,
  resizeTerminal,
  terminalCommand,
  terminalSessions,
  type TerminalSize,
} from "./terminal.ts";

const adoptedPollMs = 500;
const maxExecOutput = 10 * 1024;

export interface Launch {
  argv: readonly string[];
  env: Record<string, string>;
  cwd: string;
  logFile: string;
  /** A file to be made for its input, and how that ends. */
  input?: { file: string; mode: InputMode } | undefined;
  /** Where the exit code is to be left for a later agent. */
  exitFile?: string | undefined;
  tty?: boolean | undefined;
}

/**
 * Only a parent learns an exit code, so a shell stays as one. It outlives the signals that end the
 * program (which gets them as usual), because a trap that does something is not inherited.
 */
const keepExitCode = `trap : TERM INT HUP QUIT; f=$1; shift; "$@"; c=$?; echo $c > "$f"; exit $c`;

/** A container that is a process group of this machine. */
export class ProcessContainer implements SandboxContainer {
  readonly id: string;
  readonly startedAt: number;
  readonly pid: number;
  /** 0 where the system does not tell. */
  readonly startTicks: number;
  readonly exited: Promise<ExitStatus>;
  readonly ready: Promise<void>;
  readonly #clock: Clock;
  readonly #input: ContainerInput | undefined;
  readonly #surroundings: { cwd: string; env: Record<string, string> };
  /** Nothing of it is left, and its number may be somebody else's. */
  #isOver = false;

  private constructor(
    record: Omit<ProcessRecord, "container" | "run">,
    exited: Promise<ExitStatus>,
    ready: Promise<void>,
    clock: Clock,
    input?: ContainerInput,
  ) {
    this.#clock = clock;
    this.#input = input;
    this.id = record.id;
    this.pid = record.pid;
    this.startTicks = record.startTicks;
    this.startedAt = record.startedAt;
    this.#surroundings = { cwd: record.cwd, env: record.env };
    this.exited = exited;
    this.ready = ready;
    void exited.then(() => (this.#isOver = true));
  }

  /**
   * Starts a process in a session of its own. Its output goes straight to the file, so that it can
   * outlive this program. A program that cannot be started is a container that has exited.
   */
  static start(id: string, launch: Launch, clock: Clock): ProcessContainer {
    const { cwd, logFile, exitFile, tty = false } = launch;
    const env = tty ? { TERM: "xterm", ...launch.env } : launch.env;
    const isThere = isOnPath(launch.argv[0] ?? "", env["PATH"] ?? "");
    const onTerminal = tty && isThere && hasTerminals();
    const own = onTerminal ? terminalCommand(launch.argv) : launch.argv;
    const wrapped = exitFile !== undefined && isThere;
    const argv = wrapped ? ["/bin/sh", "-c", keepExitCode, "sh", exitFile, ...own] : own;
    const stdin = launch.input && ContainerInput.create(launch.input.file, launch.input.mode);
    const log = openSync(logFile, "a", 0o600);
    if (tty && isThere && !onTerminal) writeSync(log, noTerminal);
    let child: ChildProcess;
    try {
      child = spawn(argv[0] ?? "", argv.slice(1), {
        cwd,
        env: { ...env, SPRY_READY_FD: "3" },
        detached: true,
        stdio: [stdin?.descriptor ?? "ignore", log, log, "pipe"],
      });
    } finally {
      closeSync(log);
      if (stdin) closeSync(stdin.descriptor);
    }
    const pid = child.pid ?? 0;
    const startTicks = readStat(pid)?.startTicks ?? 0;
    const exited = new Promise<ExitStatus>((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        if (child.pid === undefined) resolve(startError(argv[0] ?? "", error, clock));
      });
      child.once("exit", (code, signal) => {
        // What the main process leaves behind ends with it, as in any container.
        signalGroupOf({ pid, startTicks }, "SIGKILL");
        stdin?.input.close();
        resolve(exitStatus(code, signal, clock));
      });
    });
    child.unref();
    const record = { id, pid, startTicks, startedAt: clock.now(), cwd, env };
    return new ProcessContainer(
      record,
      exited,
      readySignal(child.stdio[3] as Readable),
      clock,
      stdin?.input,
    );
  }

  /**
   * Takes over a process that another agent started, or learns of its end. Its exit code is known
   * only where it was left in a file. Of one that has ended before, nothing is signalled: by now its
   * number may be that of any group.
   */
  static adopt(record: ProcessRecord, exitFile: string, clock: Clock): ProcessContainer {
    const exited = new Promise<ExitStatus>((resolve) => {
      const look = (wasAlive: boolean) => {
        if (isAlive(record)) return void clock.after(adoptedPollMs, () => look(true));
        if (wasAlive) signalGroupOf(record, "SIGKILL");
        resolve(readExit(exitFile) ?? unknownExit(clock));
      };
      look(false);
    });
    return new ProcessContainer(record, exited, new Promise(() => {}), clock);
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#isOver) return;
    // On a terminal the program has a session of its own; its parent would give it two seconds only.
    const sessions = terminalSessions(this.pid);
    for (const pid of sessions) signalGroup(pid, signal);
    if (sessions.length === 0 || signal === "SIGKILL") signalGroupOf(this, signal);
  }

  exec(argv: readonly string[], { timeoutMs }: { timeoutMs: number }): Promise<ExecResult> {
    return new Promise((resolve) => {
      const options = {
        ...this.#surroundings,
        timeout: timeoutMs,
        // One that ignores SIGTERM would hold up the end of its Pod.
        killSignal: "SIGKILL" as const,
        maxBuffer: maxExecOutput,
      };
      const child = execFile(argv[0] ?? "", argv.slice(1), options, (error, stdout, stderr) => {
        const output = (stdout + stderr).slice(0, maxExecOutput);
        if (!error) resolve({ exitCode: 0, output });
        else if (child.killed) resolve({ exitCode: -1, output: `timed out after ${timeoutMs} ms` });
        else if (typeof error.code === "number") resolve({ exitCode: error.code, output });
        else resolve({ exitCode: 126, output: error.message });
      });
      child.stdin?.end();
    });
  }

  openStdin(): Writable | undefined {
    return this.#input?.open();
  }

  resize(size: TerminalSize): void {
    if (!this.#isOver) resizeTerminal(this.pid, size, this.#clock);
  }

  execStreams(command: ExecCommand): ExecProcess {
    const exec = execInProcessSandbox(command, this.#surroundings, this.#clock);
    // Its container's end is its own.
    void this.exited.then(() => exec.kill());
    return exec;
  }
}

function readySignal(pipe: Readable): Promise<void> {
  return new Promise((resolve) => {
    let text = "";
    pipe.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString("latin1")).slice(-64);
      if (text.includes("ready\n")) resolve();
    });
    pipe.on("error", () => {});
    // Otherwise the pipe alone would keep this program alive.
    (pipe as Readable & { unref?: () => void }).unref?.();
  });
}

/** What the shell around a program has left; undefined when there is nothing. */
export function readExit(exitFile: string): ExitStatus | undefined {
  try {
    const text = readFileSync(exitFile, "utf8").trim();
    if (!/^\d{1,3}$/.test(text)) return undefined;
    return { exitCode: Number(text), finishedAt: statSync(exitFile).mtimeMs };
  } catch {
    return undefined;
  }
}

function unknownExit(clock: Clock): ExitStatus {
  return {
    exitCode: 137,
    finishedAt: clock.now(),
    reason: "ContainerStatusUnknown",
    message: "The process had been taken over from an earlier agent; its exit code is not known",
  };
}

function isOnPath(program: string, searchPath: string): boolean {
  if (program.includes("/")) return existsSync(program);
  return searchPath.split(":").some((dir) => existsSync(path.join(dir, program)));
}

function exitStatus(code: number | null, signal: NodeJS.Signals | null, clock: Clock): ExitStatus {
  const finishedAt = clock.now();
  if (!signal) return { exitCode: code ?? 0, finishedAt };
  return { exitCode: 128 + (constants.signals[signal] ?? 0), signal, finishedAt };
}

function startError(program: string, error: NodeJS.ErrnoException, clock: Clock): ExitStatus {
  const why =
    error.code === "ENOENT"
      ? `exec: "${program}": executable file not found in $PATH`
      : `exec: "${program}": ${error.message}`;
  return { exitCode: 128, finishedAt: clock.now(), reason: "StartError", message: why };
}
