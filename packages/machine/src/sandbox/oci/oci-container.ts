import { readFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { type Readable, type Writable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ContainerInput } from "../container-input.ts";
import { type ExecCommand, type ExecProcess } from "../exec-process.ts";
import { readExit } from "../process-container.ts";
import { execInProcessSandbox } from "../process-exec.ts";
import { resultOf } from "../exec-result.ts";
import { isAlive, readStat, signalIfSame, signalProcess } from "../processes.ts";
import { knownProcess } from "../records.ts";
import { readySignal } from "../ready-signal.ts";
import { type ExecResult, type ExitStatus, type SandboxContainer } from "../sandbox.ts";
import { resizeTerminal, type TerminalSize } from "../terminal.ts";
import { type OciRecord } from "./oci-records.ts";
import {
  firstProcess,
  type OciLaunch,
  type OciContext,
  readPid,
  runtimePath,
  startError,
  startRuntime,
} from "./runtime-process.ts";

const adoptedPollMs = 500;
const unknownMs = 250;
const defaultActionMs = [5, 50, 500];
/** On a busy machine, a start may not get a processor for longer than that. */
const retriedMs = [1_000, 2_000, 4_000, 8_000, 16_000];
/** A program that has not said that it is ready may still be installing its handlers for so long. */
const startingMs = 30_000;
/** How long a container keeps the higher limit of its start: until its first response, but at most `atMost`; a task, `ofTask`. */
const startLimitMs = { afterReady: 500, atMost: 5_000, ofTask: 1_000 };
/**
 * Of a Go program that a signal was to end by its default action, which the kernel ignores for the first process of a PID
 * namespace (`dieFromSignal` in Go's runtime).
 */
const goExitCode = 2;

/**
 * A container of an OCI runtime. The runtime stays as its parent, in a session of its own: it copies
 * the output to the log, learns the exit code, and is not needed by the container to live on.
 */
export class OciContainer implements SandboxContainer {
  readonly record: OciRecord;
  readonly exited: Promise<ExitStatus>;
  readonly ready: Promise<void>;
  readonly hasWaited: boolean;
  readonly #bundle: string;
  readonly #context: OciContext;
  readonly #input: ContainerInput | undefined;
  #execs = 0;
  /** The signal that it would have ended by, if it were an ordinary process. */
  #endedFor: NodeJS.Signals | undefined;
  /** The signal that came while the first process was still the runtime itself, which has yet to execute the program. */
  #cameTooEarly: NodeJS.Signals | undefined;
  /** Why the platform has ended it. */
  #endReason: string | undefined;
  #isReady = false;
  #isOver = false;

  private constructor(
    record: OciRecord,
    bundle: string,
    context: OciContext,
    ends: { exited: Promise<ExitStatus>; ready: Promise<void>; input?: ContainerInput | undefined },
    hasWaited = false,
  ) {
    this.record = record;
    this.exited = ends.exited.then((exit) => this.#cleanUp(exit));
    this.ready = ends.ready;
    this.hasWaited = hasWaited;
    void this.ready.then(() => (this.#isReady = true));
    this.#input = ends.input;
    this.#bundle = bundle;
    this.#context = context;
  }

  get id(): string {
    return this.record.id;
  }

  get startedAt(): number {
    return this.record.startedAt;
  }

  /**
   * Resolves when the container's program has been started. One that cannot be started is a
   * container that has exited, as with any sandbox. Throws `NotStarted` when the runtime itself is not started.
   */
  static async start(launch: OciLaunch, context: OciContext): Promise<OciContainer> {
    const { id, container, run, bundle } = launch;
    const { clock } = context;
    context.cgroups.use(id);
    const { child, input } = await startRuntime(launch, context).catch(async (error: unknown) => {
      await context.cgroups.remove(id);
      throw error;
    });
    const ready = readySignal(child.stdio[3] as Readable);
    const ended = new Promise<number>((resolve) => {
      // Of a signal that could not be sent.
      child.on("error", () => {});
      child.once("exit", (code) => resolve(code ?? 137));
    });
    child.unref();
    const pid = await firstProcess(path.join(bundle, "pid"), ended, clock);
    const record: OciRecord = {
      container,
      run,
      id,
      ...knownProcess({ pid, startTicks: startTicksOf(pid) }),
      monitor: { pid: child.pid, startTicks: child.startTicks },
      startedAt: clock.now(),
      cpuLimit: launch.cpuLimit,
    };
    const exited = ended.then((exitCode) => {
      // The runtime alone may have been killed: the container must not keep running unsupervised.
      killFirst(record);
      input?.close();
      const finishedAt = clock.now();
      return pid === undefined ? startError(bundle, clock) : { exitCode, finishedAt };
    });
    const started = new OciContainer(record, bundle, context, { exited, ready, input });
    started.#limitCpuLater(launch.exitFile !== undefined);
    return started;
  }

  /** Of a process that had waited for its Pod, and has just been given it. */
  static takeOver(
    record: OciRecord,
    bundle: string,
    context: OciContext,
    ends: { exited: Promise<ExitStatus>; ready: Promise<void> },
    isTask: boolean,
  ): OciContainer {
    const taken = new OciContainer(record, bundle, context, ends, true);
    taken.#limitCpuLater(isTask);
    return taken;
  }

  #limitCpuLater(isTask: boolean): void {
    const { clock } = this.#context;
    const { atMost, ofTask } = startLimitMs;
    clock.after(isTask ? ofTask : atMost, () => this.#limitCpu());
    void this.ready.then(() => clock.after(startLimitMs.afterReady, () => this.#limitCpu()));
  }

  #limitCpu(): void {
    const { id, cpuLimit } = this.record;
    if (cpuLimit !== undefined && !this.#isOver) this.#context.cgroups.limitCpu(id, cpuLimit);
  }

  /** Takes over a container that another agent started, or learns of its end. */
  static adopt(
    record: OciRecord,
    bundle: string,
    exitFile: string,
    context: OciContext,
  ): OciContainer {
    const { clock } = context;
    context.cgroups.use(record.id);
    const exited = new Promise<ExitStatus>((resolve) => {
      const look = () => {
        // The shell around the runtime writes the code a moment after the container has ended.
        if (isAlive(record) || isAlive(record.monitor)) {
          clock.after(adoptedPollMs, look);
          return;
        }
        resolve(readExit(exitFile) ?? unknownExit(clock));
      };
      look();
    });
    const ready = new Promise<void>(() => {});
    const adopted = new OciContainer(record, bundle, context, { exited, ready });
    // Its agent may have been killed before it did so.
    if (isAlive(record)) adopted.#limitCpu();
    return adopted;
  }

  /** What only the container's cgroup knows is read, then nothing of it is left. */
  async #cleanUp(exit: ExitStatus): Promise<ExitStatus> {
    this.#isOver = true;
    const { runtime, cgroups } = this.#context;
    const { exitCode, finishedAt } = exit;
    const ranOut = exitCode !== 0 && cgroups.oomKills(this.id) > 0;
    // What cannot be removed now is removed as a stray by the next agent: the end is reported anyway.
    await Promise.allSettled([runtime.forget(this.id), cgroups.remove(this.id)]);
    if (ranOut) return { exitCode, finishedAt, reason: "OOMKilled" };
    if (this.#endReason !== undefined)
      return { exitCode: 137, finishedAt, message: `the container was ended: ${this.#endReason}` };
    const signal = this.#signalOf(exitCode);
    if (!signal) return exit;
    return { exitCode: 128 + constants.signals[signal], signal, finishedAt };
  }

  /** The signal that it has ended by, where the exit code says something else. */
  #signalOf(exitCode: number): NodeJS.Signals | undefined {
    if (exitCode === 128 + constants.signals.SIGKILL) return this.#endedFor;
    return exitCode === goExitCode ? this.#cameTooEarly : undefined;
  }

  #send(signal: NodeJS.Signals): void {
    const { pid } = this.record;
    if (isRuntimeItself(pid)) this.#cameTooEarly = signal;
    // Without a descriptor it cannot be looked at: it is signalled once it can.
    if (!signalIfSame(this.record, signal) && isAlive(this.record))
      this.#context.clock.after(unknownMs, () => this.#send(signal));
  }

  /**
   * Signals the first process: it alone gets signals, and the kernel ends all others with it. One
   * that does not handle the signal is ended, as it would be outside of a container; the kernel
   * ignores such signals to the first process of a PID namespace.
   */
  kill(signal: NodeJS.Signals): void {
    const { pid } = this.record;
    if (!isAlive(this.record)) return;
    // Asked first: a handler that is installed a moment later would hide that the signal was lost.
    const isHandled = handles(pid, signal);
    const isStarting = this.#isStarting;
    this.#send(signal);
    if (signal === "SIGKILL") return;
    if (!isHandled) return this.#endBy(signal);
    const { clock } = this.#context;
    for (const ms of defaultActionMs) clock.after(ms, () => this.#endIfDeaf(signal));
    if (!isStarting) return;
    // One that has become ready meanwhile has its handlers: it gets the signal once more, and not again.
    let isHeard = false;
    const again = () => {
      if (isHeard || !isAlive(this.record) || !handles(pid, signal)) return;
      isHeard = !this.#isStarting;
      this.#send(signal);
    };
    for (const ms of [...defaultActionMs, ...retriedMs]) clock.after(ms, again);
  }

  /**
   * Until a program installs its own handlers, Node.js handles the first signal itself and tries to end by the default action,
   * which has no effect here. A handler that the program has installed since then gets only a second signal.
   */
  #endIfDeaf(signal: NodeJS.Signals): void {
    if (isAlive(this.record) && !handles(this.record.pid, signal)) this.#endBy(signal);
  }

  get #isStarting(): boolean {
    return !this.#isReady && this.#context.clock.now() - this.startedAt < startingMs;
  }

  /** Kills it, whatever it does with signals; `reason` goes on "the container was ended: ". */
  endFor(reason: string): void {
    if (!isAlive(this.record)) return;
    this.#endReason ??= reason;
    signalProcess(this.record.pid, "SIGKILL");
  }

  #endBy(signal: NodeJS.Signals): void {
    this.#endedFor ??= signal;
    this.#send("SIGKILL");
  }

  /** A terminal is that of the runtime, which hands it on to the command's own. */
  execStreams({ argv, stdin, tty }: ExecCommand): ExecProcess {
    const { runtime, clock } = this.#context;
    const pidFile = path.join(this.#bundle, `exec-${++this.#execs}.pid`);
    const command = [runtime.file, ...runtime.exec(this.id, pidFile, argv, { tty })];
    const context = { cwd: this.#bundle, env: { PATH: runtimePath } };
    const exec = execInProcessSandbox({ argv: command, stdin, tty }, context, clock);
    let isRunning = true;
    const ended = () => void (isRunning = false);
    exec.exited.then(ended, ended);
    const kill = () => {
      // Later, another process may have the id.
      const pid = isRunning ? readPid(pidFile) : undefined;
      // The runtime ends with the command; ended first, it would leave the command behind.
      if (pid === undefined) exec.kill();
      else signalProcess(pid, "SIGKILL");
    };
    void this.exited.then(() => exec.kill());
    return { ...exec, kill };
  }

  resize(size: TerminalSize): void {
    const { pid } = this.record.monitor;
    if (isAlive(this.record.monitor)) resizeTerminal(pid, size, this.#context.clock);
  }

  openStdin(): Writable | undefined {
    return this.#input?.open();
  }

  exec(argv: readonly string[], { timeoutMs }: { timeoutMs: number }): Promise<ExecResult> {
    const { runtime } = this.#context;
    const pidFile = path.join(this.#bundle, `exec-${++this.#execs}.pid`);
    const args = runtime.exec(this.id, pidFile, argv);
    const command = [runtime.file, ...args];
    const exec = execInProcessSandbox(
      { argv: command, stdin: false, tty: false },
      { cwd: this.#bundle, env: { PATH: runtimePath } },
      this.#context.clock,
    );
    const kill = () => {
      // The runtime ends with the program; ended first, it would leave the program behind.
      const pid = readPid(pidFile);
      if (pid === undefined) exec.kill();
      else signalProcess(pid, "SIGKILL");
    };
    return resultOf({ ...exec, kill }, timeoutMs, this.#context.clock);
  }
}

export function startTicksOf(pid: number | undefined): number {
  return pid === undefined ? 0 : (readStat(pid)?.startTicks ?? 0);
}

/** Whether a process catches or ignores a signal (`/proc/<pid>/status`, proc_pid_status(5)). */
function handles(pid: number, signal: NodeJS.Signals): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const masks = [...status.matchAll(/^Sig(?:Ign|Cgt):\t([0-9a-f]+)$/gm)];
    const bit = 1n << BigInt(constants.signals[signal] - 1);
    return masks.some(([, mask = "0"]) => (BigInt(`0x${mask}`) & bit) !== 0n);
  } catch {
    // It has ended.
    return true;
  }
}

/** Whether runc has yet to execute the container's program: it names its own process `runc:[2:INIT]` until then. */
function isRuntimeItself(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "latin1").startsWith("runc:[");
  } catch {
    return false;
  }
}

function killFirst(record: OciRecord): void {
  signalIfSame(record, "SIGKILL");
}

function unknownExit(clock: Clock): ExitStatus {
  return {
    exitCode: 137,
    finishedAt: clock.now(),
    reason: "ContainerStatusUnknown",
    message: "The container was started by an earlier node agent; its exit code is unknown",
  };
}
