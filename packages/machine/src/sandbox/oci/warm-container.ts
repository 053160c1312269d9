import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Readable, type Writable } from "node:stream";
import { startProgram, type StartedProgram } from "@spry/kube";
import { isAlive, signalIfSame } from "../processes.ts";
import { readySignal } from "../ready-signal.ts";
import { type ExitStatus } from "../sandbox.ts";
import { said, unref } from "../warm/warm-process.ts";
import { type Waiting } from "../warm/warm-pool.ts";
import {
  assertHandedOver,
  handoverOf,
  helperCommand,
  type MountPlan,
  stagedCommand,
} from "./handover.ts";
import { startTicksOf } from "./oci-container.ts";
import { HandoverHelper } from "./handover-helper.ts";
import { type OciRecord } from "./oci-records.ts";
import { type OciSpec } from "./oci-spec.ts";
import {
  firstProcess,
  keepingExitCode,
  type OciContext,
  ownerVariable,
  runtimePath,
} from "./runtime-process.ts";

/** A runtime takes no longer line (runtime-contract.md 1.5). */
const maxMessage = 2 * 1024 * 1024;
/** So that a Pod's environment fits into it, as JSON, with all that is added. */
export const maxEnvironment = maxMessage / 2;

export interface WarmContainerStart {
  /** The runtime's name for it. */
  id: string;
  /** For it alone: what the runtime runs, and its output until it has a Pod. */
  dir: string;
  /** The address that its Pod is to have. */
  ip: string;
  key: string;
  oci: OciSpec;
  /** pivot_root(8) of this machine. */
  pivotRoot: string;
  /** It is a task: its exit code matters beyond this agent's life. */
  isTask: boolean;
}

/** The Pod's container, which it becomes. */
export interface OciSuccessor {
  /** Its `config.json` is there already. */
  bundle: string;
  oci: OciSpec;
  plan: MountPlan;
  /** Where the Function's code is. */
  directory: string;
  /** Of a task, after those that it was started with. */
  args: readonly string[];
  logFile: string;
  /** Where the exit code of a task is to be left. */
  exitFile: string;
}

/** A container whose process waits for a Function, and becomes a Pod's container: once, or never. */
export class WarmContainer implements Waiting {
  readonly id: string;
  readonly ip: string;
  readonly key: string;
  readonly exited: Promise<ExitStatus>;
  readonly waiting: Promise<void>;
  readonly pid: number;
  readonly startTicks: number;
  readonly monitor: OciRecord["monitor"];
  readonly #start: WarmContainerStart;
  readonly #context: OciContext;
  readonly #child: StartedProgram;
  #helper: HandoverHelper | undefined;
  #isTaken = false;
  #isOver = false;

  private constructor(
    start: WarmContainerStart,
    context: OciContext,
    child: StartedProgram,
    process: { pid: number; ended: Promise<number> },
  ) {
    const { id, ip, key } = start;
    this.#start = start;
    this.#context = context;
    this.#child = child;
    this.id = id;
    this.ip = ip;
    this.key = key;
    this.pid = process.pid;
    this.startTicks = startTicksOf(process.pid);
    this.monitor = { pid: child.pid, startTicks: child.startTicks };
    this.waiting = this.#prepare();
    this.waiting.catch(() => {});
    this.exited = process.ended.then((exitCode) => {
      this.#isOver = true;
      this.#kill();
      // Not waited for: on a busy disk it takes longer than all the rest of a build's end.
      void rm(start.dir, { recursive: true, force: true }).catch(() => {});
      return { exitCode, finishedAt: context.clock.now() };
    });
    this.#pipe(4).on("error", () => {});
    unref(this.#pipe(4));
  }

  /** Throws when it cannot be started. */
  static async start(start: WarmContainerStart, context: OciContext): Promise<WarmContainer> {
    const { id, dir, oci, pivotRoot, isTask } = start;
    const { runtime, cgroups, owner, clock } = context;
    const stage = stageOf(dir);
    mkdirSync(stage, { recursive: true, mode: 0o700 });
    await writeFile(path.join(dir, "config.json"), JSON.stringify(oci), { mode: 0o600 });
    const files = { pidFile: path.join(dir, "pid"), errorFile: path.join(dir, "errors.json") };
    const run = runtime.run(id, { bundle: dir, ...files }, 2);
    const kept = isTask ? keepingExitCode(exitOf(dir), run) : run;
    const [file = "", ...args] = stagedCommand(stage, pivotRoot, kept);
    cgroups.use(id);
    const log = openSync(logOf(dir), "ax", 0o600);
    try {
      const child = await startProgram(file, args, {
        cwd: dir,
        env: { PATH: runtimePath, [ownerVariable]: owner },
        detached: true,
        stdio: ["ignore", log, log, "pipe", "pipe"],
      });
      const ended = new Promise<number>((resolve) => {
        // Of a signal that could not be sent.
        child.on("error", () => {});
        child.once("exit", (code) => resolve(code ?? 137));
      });
      child.unref();
      const pid = (await firstProcess(files.pidFile, ended, clock)) ?? 0;
      const started = new WarmContainer(start, context, child, { pid, ended });
      if (pid > 0) return started;
      await started.end();
      throw new Error("the OCI runtime could not start a warm container");
    } finally {
      closeSync(log);
    }
  }

  async #prepare(): Promise<void> {
    await said(this.#pipe(3) as Readable, "waiting\n");
    this.#helper = await HandoverHelper.start(helperCommand(this.pid, this.monitor.pid));
    // It cannot be used without.
    void this.#helper.ended.then(() => this.#isTaken || this.#kill());
    await this.#helper.prepared;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Becomes a Pod's container; resolves when it has been given the Function, with what resolves when that is ready. Throws, with
   * nothing left of it, when it cannot. Only the first call does anything.
   */
  async becomes(successor: OciSuccessor): Promise<{ ready: Promise<void>; cpuBefore: number }> {
    try {
      if (this.#isTaken || this.#isOver || !isAlive(this)) throw new Error("the process has ended");
      this.#isTaken = true;
      const { bundle, oci, directory, args, logFile, exitFile } = successor;
      const { dir, isTask } = this.#start;
      const env = { ...this.#home(), ...environmentOf(oci) };
      const message = `${JSON.stringify({ directory, env, ...(isTask && { args }) })}\n`;
      if (message.length >= maxMessage) throw new Error("its environment is too large");
      // What is in a container's log is its Function's.
      if (statSync(logOf(dir)).size > 0) throw new Error("the runtime has written something");
      const cpuBefore = this.#context.cgroups.usage(this.id)?.cpuNanoseconds ?? 0;
      await Promise.all([this.#mount(successor), this.#configure(bundle)]);
      if (isTask) symlinkSync(exitFile, exitOf(dir));
      renameSync(logOf(dir), logFile);
      const ready = readySignal(this.#pipe(3) as Readable);
      (this.#pipe(4) as Writable).end(message);
      return { ready, cpuBefore };
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  async #mount({ bundle, oci, plan }: OciSuccessor): Promise<void> {
    const handover = {
      stage: stageOf(this.#start.dir),
      bundle,
      root: path.join(bundle, oci.root.path),
      plan,
      readOnly: oci.root.readonly,
      hostName: oci.hostname,
    };
    const { files, lines } = handoverOf(handover);
    for (const [name, text] of Object.entries(files))
      writeFileSync(path.join(bundle, name), text, { mode: 0o600 });
    if (!this.#helper) throw new Error("it has not been prepared");
    await this.#helper.work(lines, this.#context.clock);
    assertHandedOver(this.pid, handover);
  }

  /** Commands in the container get their environment from there. */
  async #configure(bundle: string): Promise<void> {
    const file = path.join(this.#start.dir, "config.json");
    await rm(file);
    await symlink(path.join(bundle, "config.json"), file);
  }

  /** The runtime has looked it up for the user of the container. */
  #home(): { HOME?: string } {
    const text = readFileSync(`/proc/${this.pid}/environ`, "utf8");
    const HOME = /(?:^|\0)HOME=([^\0]*)/.exec(text)?.[1];
    return HOME === undefined ? {} : { HOME };
  }

  async end(): Promise<void> {
    this.#isTaken = true;
    this.#kill();
    this.#helper?.end();
    await this.exited;
    const { runtime, cgroups } = this.#context;
    await runtime.delete(this.id);
    await cgroups.remove(this.id);
  }

  /** The runtime ends with it. */
  #kill(): void {
    if (!signalIfSame(this, "SIGKILL") && !this.#isOver) signalIfSame(this.monitor, "SIGKILL");
  }

  #pipe(fd: number): Readable | Writable {
    return this.#child.stdio[fd] as Readable | Writable;
  }
}

/** Shared with the container, in the mount namespace of its runtime. */
export const stageOf = (dir: string): string => path.join(dir, "stage");
const logOf = (dir: string): string => path.join(dir, "log");
/** A link, once it is known whose exit it is. */
const exitOf = (dir: string): string => path.join(dir, "exit");

function environmentOf(oci: OciSpec): Record<string, string> {
  return Object.fromEntries(
    oci.process.env.map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
