import { closeSync, fchownSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { type Readable, type Writable } from "node:stream";
import { type Clock, startProgram, type StartedProgram } from "@spry/kube";
import {
  completed,
  completeFd,
  type Confined,
  type Confinement,
  helperEnvironment,
  type Program,
} from "../confinement/confinement.ts";
import { type Bind } from "../confinement/mount-table.ts";
import { exitOf } from "../process-container.ts";
import { readStat, signalGroupOf } from "../processes.ts";
import { readySignal } from "../ready-signal.ts";
import { containerDir, podDir } from "../records.ts";
import { type ExitStatus } from "../sandbox.ts";
import { childrenOf } from "../terminal.ts";

/** How long mounting may take; it takes some milliseconds. */
const completeMs = 2_000;
/** A runtime takes no longer line (runtime-contract.md 1.5). */
const maxMessage = 2 * 1024 * 1024;
const maxReport = 4096;
/** In place of a container's name. */
export const warmContainer = "main";

export interface WarmStart {
  /** As a Pod's uid, and never one: `warm-…`. */
  id: string;
  dataDir: string;
  /** The address that its Pod is to have. */
  ip: string;
  /** What has to be equal in the start of its Pod. */
  key: string;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  confinement: Confinement;
  /** What it sees of the machine until it has a Pod. */
  binds: readonly Bind[];
  clock: Clock;
}

/** The Pod's container, which the process becomes. */
export interface Successor {
  confined: Confined;
  binds: readonly Bind[];
  program: Program;
  /** Where the Function's code is, as the process sees it. */
  directory: string;
  logFile: string;
}

/** A process of a runtime that has its sandbox, and waits for the Pod whose container it becomes: once, or never. */
export class WarmProcess {
  readonly id: string;
  readonly ip: string;
  readonly key: string;
  readonly pid: number;
  readonly startTicks: number;
  readonly exited: Promise<ExitStatus>;
  /** Resolves when it has nothing left to prepare; never, if its runtime does not say so. */
  readonly waiting: Promise<void>;
  readonly #start: WarmStart;
  readonly #child: StartedProgram;
  readonly #confined: Confined;
  readonly #logFile: string;
  #ticksBefore = 0;
  #isTaken = false;
  #isOver = false;

  private constructor(
    start: WarmStart,
    child: StartedProgram,
    confined: Confined,
    logFile: string,
  ) {
    const { id, ip, key, clock } = start;
    this.#start = start;
    this.#child = child;
    this.#confined = confined;
    this.#logFile = logFile;
    this.id = id;
    this.ip = ip;
    this.key = key;
    this.pid = child.pid;
    this.startTicks = child.startTicks;
    this.exited = exitOf(child, this, clock);
    void this.exited.then(() => (this.#isOver = true));
    this.waiting = this.#preparation();
    for (const fd of [4, completeFd]) this.#pipe(fd).on("error", () => {});
    child.unref();
    for (const fd of [4, completeFd]) unref(this.#pipe(fd));
  }

  /** Throws when the files that it needs cannot be made, and `NotStarted`. */
  static async start(start: WarmStart): Promise<WarmProcess> {
    const { id, dataDir, ip, argv, env, confinement, binds } = start;
    const user = confinement.userOf(ip);
    const jail = confinement.jails.of(id, warmContainer);
    const confined: Confined = { kind: confinement.kind, ...user, jail };
    const program = { argv, env: { ...env, SPRY_READY_FD: "3", SPRY_WARM_FD: "4" } };
    const command = confinement.waitingCommand(
      confined,
      { ...program, cwd: "/", hostName: "" },
      binds,
    );
    const logFile = path.join(warmDir(dataDir), `${id}.log`);
    mkdirSync(path.dirname(logFile), { recursive: true, mode: 0o755 });
    const log = openSync(logFile, "ax", 0o600);
    try {
      if (confined.kind === "root") fchownSync(log, user.uid, user.gid);
      const child = await startProgram(command[0] ?? "", command.slice(1), {
        cwd: "/",
        // By it, what a platform leaves behind is found.
        env: helperEnvironment(path.join(containerDir(podDir(dataDir, id), warmContainer), "root")),
        detached: true,
        stdio: ["ignore", log, log, "pipe", "pipe", "pipe"],
      });
      return new WarmProcess(start, child, confined, logFile);
    } catch (error) {
      rmSync(logFile, { force: true });
      throw error;
    } finally {
      closeSync(log);
    }
  }

  async #preparation(): Promise<void> {
    await said(this.#pipe(3) as Readable, "waiting\n");
    this.#ticksBefore = ticksOf(this.pid);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether it has written nothing: what is in a container's log is its Function's. */
  get #isSilent(): boolean {
    return statSync(this.#logFile, { throwIfNoEntry: false })?.size === 0;
  }

  /** CPU time until it waited, in clock ticks: none of its Function's. */
  get ticksBefore(): number {
    return this.#ticksBefore;
  }

  /**
   * Becomes a Pod's container; resolves when it has been given the Function, with what resolves when that is ready. Throws, with
   * nothing left of it, when it cannot. Only the first call does anything.
   */
  async becomes(successor: Successor): Promise<{ ready: Promise<void> }> {
    try {
      if (this.#isTaken || this.#isOver) throw new Error("the process has ended");
      this.#isTaken = true;
      const { directory, program, confined, binds, logFile } = successor;
      const message = `${JSON.stringify({ directory, env: { ...program.env, SPRY_READY_FD: "3" } })}\n`;
      if (message.length >= maxMessage) throw new Error("its environment is too large");
      if (!this.#isSilent) throw new Error("the runtime has written something");
      const { confinement, binds: before } = this.#start;
      const waiting = { confined: this.#confined, binds: before };
      const line = confinement.complete(waiting, confined, program, binds);
      await this.#complete(line);
      renameSync(this.#logFile, logFile);
      const ready = readySignal(this.#pipe(3) as Readable);
      (this.#pipe(4) as Writable).end(message);
      // Its root directory is elsewhere by now.
      confinement.jails.remove(this.id);
      return { ready };
    } catch (error) {
      await this.end(successor.confined.jail);
      throw error;
    }
  }

  /** Has the rest of its file system mounted, and the machine's tree taken out. */
  async #complete(line: string): Promise<void> {
    const socket = this.#pipe(completeFd) as Readable & Writable;
    let report = "";
    const cancel = this.#start.clock.after(completeMs, () => socket.destroy());
    socket.write(line);
    try {
      // Its other end stays open, at the helper that waits for the container's end.
      for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
        report = (report + chunk).slice(-maxReport);
        if (Object.values(completed).some((word) => report.endsWith(`${word}\n`))) break;
      }
    } catch {
      // Cancelled.
    } finally {
      cancel();
    }
    if (report !== `${completed.done}\n`)
      throw new Error(`completing its file system: ${report.trim() || "no answer"}`);
  }

  /** Kills it, whatever it is at. `jail` is where its root directory has been moved to. */
  async end(jail?: string): Promise<void> {
    this.#isTaken = true;
    if (!this.#isOver) signalGroupOf(this, "SIGKILL");
    await this.exited;
    const { confinement, id } = this.#start;
    if (jail !== undefined) rmSync(jail, { recursive: true, force: true });
    await confinement.jails.removeWritten(id);
    confinement.jails.remove(id);
    rmSync(this.#logFile, { force: true });
  }

  #pipe(fd: number): Readable | Writable {
    return this.#child.stdio[fd] as Readable | Writable;
  }
}

/** Output of processes that wait, and the runtimes that they run. */
export const warmDir = (dataDir: string): string => path.join(dataDir, "warm");

function ticksOf(pid: number): number {
  const own = readStat(pid)?.cpuTicks ?? 0;
  return childrenOf(pid).reduce((sum, child) => sum + ticksOf(child), own);
}

/** Resolves when the word has been written. */
export function said(pipe: Readable, word: string): Promise<void> {
  return new Promise((resolve) => {
    let text = "";
    pipe.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString("latin1")).slice(-64);
      if (text.includes(word)) resolve();
    });
    pipe.on("error", () => {});
    unref(pipe);
  });
}

/** Otherwise the pipe alone would keep this program alive. */
export function unref(pipe: Readable | Writable): void {
  (pipe as { unref?: () => void }).unref?.();
}
