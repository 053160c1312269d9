import { type ChildProcess } from "node:child_process";
import { closeSync, fchownSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { type Readable, type Writable } from "node:stream";
import { type Clock, NotStarted, sleep, startProgram, type StartedProgram } from "@spry/kube";
import {
  type Confined,
  type Confinement,
  helperEnvironment,
  isInside,
  joinCommand,
} from "./confinement/confinement.ts";
import { type PodUser, type PodUsers, userCommand } from "./confinement/pod-users.ts";
import { type Bind } from "./confinement/mount-table.ts";
import { ContainerInput, type InputMode } from "./container-input.ts";
import { deferredExec } from "./deferred-exec.ts";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { resultOf } from "./exec-result.ts";
import { isOnPath } from "./programs.ts";
import { execInProcessSandbox, type ExecPlace } from "./process-exec.ts";
import { isAlive, signalGroup, signalGroupOf, signalProcess } from "./processes.ts";
import { readySignal } from "./ready-signal.ts";
import { type ProcessRecord, type WarmOrigin } from "./records.ts";
import { type ExecResult, type ExitStatus, type SandboxContainer } from "./sandbox.ts";
import {
  childrenOf,
  firstOfNamespace,
  hasTerminals,
  noTerminal,
  resizeTerminal,
  terminalCommand,
  terminalSessions,
  type TerminalSize,
} from "./terminal.ts";

const adoptedPollMs = 500;
/** The program's parent ends right after it. */
const endMs = 1000;
const startMs = 5000;
const startPollMs = 5;

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
  hostName: string;
  /** How it is kept apart, and what it sees of the machine. */
  confined?: { by: Confinement; as: Confined; binds: readonly Bind[] } | undefined;
  /** Whom it runs as, where there is no more to keep it apart. */
  user?: { by: PodUsers; as: PodUser } | undefined;
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
  /** 0 where the system does not report it. */
  readonly startTicks: number;
  readonly exited: Promise<ExitStatus>;
  readonly ready: Promise<void>;
  /** What it was before, if it had waited for its Pod. */
  readonly warm: WarmOrigin | undefined;
  readonly #clock: Clock;
  readonly #input: ContainerInput | undefined;
  readonly #context: { cwd: string; env: Record<string, string> };
  readonly #confined: Confined | undefined;
  readonly #user: PodUser | undefined;
  /** The signal that it would have ended by, if it were an ordinary process. */
  #endedFor: NodeJS.Signals | undefined;
  /** Nothing of it is left, and its number may be another process's. */
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
    this.#context = { cwd: record.cwd, env: record.env };
    this.#confined = record.confined;
    this.#user = record.user;
    this.warm = record.warm;
    this.exited = exited.then((exit) => this.#bySignal(exit));
    this.ready = ready;
    void this.exited.then(() => (this.#isOver = true));
  }

  get hasWaited(): boolean {
    return this.warm !== undefined;
  }

  /**
   * Starts a process in a session of its own. Its output goes straight to the file, so that it can
   * outlive this program. A program that cannot be started is a container that has exited; where a limit of the machine is the reason,
   * which may be another program's doing, it throws `NotStarted`, so that the start is tried again.
   */
  static async start(id: string, launch: Launch, clock: Clock): Promise<ProcessContainer> {
    const { cwd, logFile, exitFile, tty = false, confined, user } = launch;
    const env: Record<string, string> = {
      ...(tty && { TERM: "xterm" }),
      ...launch.env,
      SPRY_READY_FD: "3",
    };
    const isThere = isOnPath(launch.argv[0] ?? "", env["PATH"] ?? "");
    if ((confined ?? user) && !isThere) return ProcessContainer.#notThere(id, launch, clock);
    const { argv: program, hostName } = launch;
    const inside =
      confined?.by.command(confined.as, { argv: program, env, cwd, hostName }, confined.binds) ??
      user?.by.command(user.as, { argv: program, env, cwd });
    const onTerminal = tty && isThere && hasTerminals();
    const own = onTerminal ? terminalCommand(inside ?? program) : (inside ?? program);
    const wrapped = exitFile !== undefined && isThere;
    const argv = wrapped ? ["/bin/sh", "-c", keepExitCode, "sh", exitFile, ...own] : own;
    const stdin = launch.input && ContainerInput.create(launch.input.file, launch.input.mode);
    const log = openSync(logFile, "a", 0o600);
    if (tty && isThere && !onTerminal) writeSync(log, noTerminal);
    const owner = confined?.as.kind === "root" ? confined.as : user?.as;
    if (owner)
      // Opened once more by its name, `/dev/stdout`, a file has to be the user's.
      for (const fd of [log, ...(stdin ? [stdin.descriptor] : [])])
        fchownSync(fd, owner.uid, owner.gid);
    let child: StartedProgram;
    try {
      child = await startProgram(argv[0] ?? "", argv.slice(1), {
        cwd: inside ? "/" : cwd,
        env: inside ? helperEnvironment(env["SPRY_ROOT"] ?? "") : env,
        detached: true,
        stdio: [stdin?.descriptor ?? "ignore", log, log, "pipe"],
      });
    } catch (error) {
      stdin?.input.close();
      if (!(error instanceof NotStarted) || error.isPassing) throw error;
      return ProcessContainer.#ended(id, launch, startError(argv[0] ?? "", error, clock), clock);
    } finally {
      closeSync(log);
      if (stdin) closeSync(stdin.descriptor);
    }
    const { pid, startTicks } = child;
    const exited = exitOf(child, child, clock);
    void exited.then(() => stdin?.input.close());
    child.unref();
    const as = confined?.as;
    const record = {
      id,
      pid,
      startTicks,
      startedAt: clock.now(),
      cwd,
      env: launch.env,
      confined: as,
      user: user?.as,
    };
    return new ProcessContainer(
      record,
      exited,
      readySignal(child.stdio[3] as Readable),
      clock,
      stdin?.input,
    );
  }

  /** A process that has waited for its Pod, and has been given to it. */
  static takeOver(
    id: string,
    waited: {
      pid: number;
      startTicks: number;
      exited: Promise<ExitStatus>;
      ready: Promise<void>;
      warm: WarmOrigin;
    },
    { cwd, env, confined }: Pick<Launch, "cwd" | "env" | "confined">,
    clock: Clock,
  ): ProcessContainer {
    const { pid, startTicks, exited, ready, warm } = waited;
    const startedAt = clock.now();
    const record = { id, pid, startTicks, startedAt, cwd, env, confined: confined?.as, warm };
    return new ProcessContainer(record, exited, ready, clock);
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

  static #notThere(id: string, launch: Launch, clock: Clock): ProcessContainer {
    const [program = ""] = launch.argv;
    closeSync(openSync(launch.logFile, "a", 0o600));
    const missing = Object.assign(new Error(program), { code: "ENOENT" });
    return ProcessContainer.#ended(id, launch, startError(program, missing, clock), clock);
  }

  /** One whose program was not started. */
  static #ended(id: string, { cwd, env }: Launch, exit: ExitStatus, clock: Clock) {
    const record = { id, pid: 0, startTicks: 0, startedAt: clock.now(), cwd, env };
    return new ProcessContainer(record, Promise.resolve(exit), new Promise(() => {}), clock);
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#isOver) return;
    if (this.#confined && this.#signalInside(signal)) return;
    // On a terminal the program has a session of its own; its parent would give it two seconds only.
    const sessions = terminalSessions(this.pid);
    for (const pid of sessions) signalGroup(pid, signal);
    if (sessions.length === 0 || signal === "SIGKILL") signalGroupOf(this, signal);
  }

  /** Returns whether there is something inside to be signalled. */
  #signalInside(signal: NodeJS.Signals): boolean {
    const first = firstOfNamespace(this.pid);
    if (first === undefined) return false;
    // Others that its parent has are orphans, and came later.
    const [program] = this.#confined && isInside(this.#confined, first) ? childrenOf(first) : [];
    if (program !== undefined) signalProcess(program, signal);
    else {
      // Helpers are at work, which do not pass signals on.
      this.#endedFor ??= signal;
      signalProcess(first, "SIGKILL");
    }
    // What the program's parent would still have to do, it need not.
    if (signal === "SIGKILL") this.#clock.after(endMs, () => this.#end());
    return true;
  }

  #end(): void {
    if (!this.#isOver) signalGroupOf(this, "SIGKILL");
  }

  #bySignal(exit: ExitStatus): ExitStatus {
    const signal = this.#endedFor;
    if (signal === undefined || exit.exitCode === 0 || exit.reason) return exit;
    const { finishedAt } = exit;
    return { exitCode: 128 + constants.signals[signal], signal, finishedAt };
  }

  exec(argv: readonly string[], { timeoutMs }: { timeoutMs: number }): Promise<ExecResult> {
    return resultOf(this.execStreams({ argv, stdin: false, tty: false }), timeoutMs, this.#clock);
  }

  openStdin(): Writable | undefined {
    return this.#input?.open();
  }

  resize(size: TerminalSize): void {
    if (!this.#isOver) resizeTerminal(this.pid, size, this.#clock);
  }

  execStreams(command: ExecCommand): ExecProcess {
    const place = this.#execPlace();
    const begin = (at: ExecPlace) => execInProcessSandbox(command, at, this.#clock);
    const exec = place
      ? begin(place)
      : deferredExec(
          this.#started().then(() => begin(this.#execPlace() ?? this.#noPlace)),
          command,
        );
    // Its container's end is its own.
    void this.exited.then(() => exec.kill());
    return exec;
  }

  /** Where a command is run next to the program; undefined as long as only helpers run. */
  #execPlace(): ExecPlace | undefined {
    const { cwd, env } = this.#context;
    const confined = this.#confined;
    const user = this.#user;
    if (user) {
      const helpers = helperEnvironment(env["SPRY_ROOT"] ?? "");
      const within = (argv: readonly string[]) => ({
        argv: userCommand(user, { argv, cwd }),
        env: helpers,
      });
      return { cwd, env, within };
    }
    if (!confined) return { cwd, env };
    const target = firstOfNamespace(this.pid);
    if (target === undefined || !isInside(confined, target)) return undefined;
    const helpers = helperEnvironment(env["SPRY_ROOT"] ?? "");
    const within = (argv: readonly string[]) => ({
      argv: joinCommand(confined, target, { argv, cwd }),
      env: helpers,
    });
    return { cwd, env, within };
  }

  get #noPlace(): ExecPlace {
    return { ...this.#context, within: () => "the container is not running" };
  }

  /** Helpers have made its place, or not in time. */
  async #started(): Promise<void> {
    for (let left = startMs; left > 0 && !this.#isOver && !this.#execPlace(); left -= startPollMs)
      await sleep(this.#clock, startPollMs);
  }
}

/** How a child ends, with everything that it leaves in its process group. */
export function exitOf(
  child: ChildProcess,
  process: { pid: number; startTicks: number },
  clock: Clock,
): Promise<ExitStatus> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      // What the main process leaves behind ends with it, as in any container.
      signalGroupOf(process, "SIGKILL");
      resolve(exitStatus(code, signal, clock));
    });
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
    message: "The process was started by an earlier node agent; its exit code is unknown",
  };
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
