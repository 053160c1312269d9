import {
  type Clock,
  type Container,
  type ContainerStatus,
  messageOf,
  type OutboundGuard,
  type Pod,
} from "@spry/kube";
import { type InputMode } from "../sandbox/container-input.ts";
import {
  type ExitStatus,
  type LocalImage,
  type PodSandbox,
  type SandboxContainer,
} from "../sandbox/sandbox.ts";
import { Backoff } from "./backoff.ts";
import { endGracefully, killAfter } from "./container-stop.ts";
import {
  type ContainerState,
  endInWords,
  isHeapFull,
  lostState,
  startErrorState,
  terminatedState,
  timeOf,
} from "./container-states.ts";
import { argvOf, environmentOf, expand, type PodObjects, type PodPlace } from "./environment.ts";
import { appendLines, floodWords, LogFile } from "./log-file.ts";
import { isolationOf } from "./isolation.ts";
import { runHook } from "./lifecycle-hooks.ts";
import { isSidecar } from "./pod-status.ts";
import { ContainerProbes, type ProbeKind } from "./probes.ts";
import {
  defaultTerminationLog,
  prepareRunFiles,
  type RunFiles,
  runFilesOf,
  terminationMessage,
} from "./run-files.ts";
import { mountsOf } from "./volumes.ts";

type Note = (type: "Normal" | "Warning", reason: string, message: string) => void;

export interface ContainerRunOptions {
  spec: Container;
  isInit: boolean;
  /** Before its first run. */
  reason: "PodInitializing" | "ContainerCreating";
  /** What the API says of it, from an earlier agent's time. */
  known?: ContainerStatus | undefined;
  clock: Clock;
  /** Something has changed: the Pod is to be looked at again. */
  wake: () => void;
  note: Note;
  /** Lines for the log of a container that has ended by an error; see `NodeOptions`. */
  lastWords?: ((ip: string, how: string) => Promise<string[]> | undefined) | undefined;
  /** See `HttpGetTarget`. */
  guard?: OutboundGuard | undefined;
}

const floodGraceSeconds = 1;
/** Within this time a process that had waited for its Pod says that it is ready, or is reported as ready without that. */
const momentMs = 50;

/** One container of a Pod through all of its runs: what it does now, did last, and may do next. */
export class ContainerRun {
  readonly spec: Container;
  readonly isInit: boolean;
  readonly isSidecar: boolean;
  readonly #clock: Clock;
  readonly #wake: () => void;
  readonly #note: Note;
  readonly #lastWords: ContainerRunOptions["lastWords"];
  readonly #guard: OutboundGuard | undefined;
  readonly #restarts = new Backoff();
  #state: ContainerState;
  #lastState: ContainerState = {};
  /** How the last run ended, until the next one begins. */
  #end: ContainerState["terminated"];
  #restartCount = 0;
  #started = false;
  #ready = false;
  #image = "";
  #imageId = "";
  #containerId = "";
  #process: SandboxContainer | undefined;
  #probes: ContainerProbes | undefined;
  #log: LogFile | undefined;
  /** Why the present run is being ended, if its log is. */
  #flooded: string | undefined;
  #stopping: Promise<void> | undefined;
  /** Resolves when the end of the present run is in the state. */
  #ended: Promise<void> = Promise.resolve();
  /** When a restart may be made; set once per exit. */
  /** `at`: by `Clock.elapsed`. */
  #restart: { at: number; pauseMs: number } | undefined;
  #starting = false;

  constructor(options: ContainerRunOptions) {
    const { spec, isInit, known, clock, wake, note } = options;
    this.spec = spec;
    this.isInit = isInit;
    this.isSidecar = isInit && isSidecar(spec);
    this.#clock = clock;
    this.#wake = wake;
    this.#note = note;
    this.#lastWords = options.lastWords;
    this.#guard = options.guard;
    this.#image = spec.image ?? "";
    this.#state = { waiting: { reason: options.reason } };
    if (known) this.#restore(known);
  }

  #restore(known: ContainerStatus): void {
    this.#restartCount = known.restartCount;
    this.#imageId = known.imageID;
    this.#containerId = known.containerID ?? "";
    this.#lastState = known.lastState ?? {};
    const { terminated, running } = known.state ?? {};
    // Running when last heard of: lost, unless `adopt` is called.
    const end = running ? lostState(known, this.#clock) : terminated;
    this.#end = end ?? known.lastState?.terminated;
    if (end) this.#state = { terminated: end };
  }

  get name(): string {
    return this.spec.name;
  }
  get isRunning(): boolean {
    return this.#process !== undefined;
  }
  /** The current process, for commands that run alongside it. */
  get process(): SandboxContainer | undefined {
    return this.#process;
  }
  get isStarting(): boolean {
    return this.#starting;
  }
  get exitCode(): number | undefined {
    return this.#end?.exitCode;
  }
  get hasStarted(): boolean {
    return this.#started;
  }
  get run(): number {
    return this.#restartCount;
  }

  status(): ContainerStatus {
    const cleared = this.#state.terminated || this.#state.waiting;
    return {
      name: this.name,
      state: this.#state,
      lastState: this.#lastState,
      ready: this.isInit && !this.isSidecar ? this.#state.terminated?.exitCode === 0 : this.#ready,
      started: cleared ? false : this.#started,
      restartCount: this.#restartCount,
      image: this.#image,
      imageID: this.#imageId,
      ...(this.#containerId ? { containerID: this.#containerId } : {}),
    };
  }

  /** Why it does not run yet. A container that has run keeps its end as `lastState`. */
  wait(reason: string, message?: string): void {
    if (this.#state.terminated) this.#lastState = { terminated: this.#state.terminated };
    this.#state = { waiting: { reason, ...(message ? { message } : {}) } };
  }

  /** A run that ends before it begins, because this machine lacks what its image needs. */
  failToStart(message: string): void {
    if (this.#end) {
      this.#lastState = { terminated: this.#end };
      this.#restartCount++;
    }
    this.#restart = undefined;
    this.#end = startErrorState(message, this.#clock);
    this.#state = { terminated: this.#end };
    this.#note("Warning", "Failed", `Error: ${message}`);
  }

  #restartAfter(finished: number): { at: number; pauseMs: number } {
    const pauseMs = this.#restarts.failed(finished) - finished;
    // An end in the future is of before the machine's clock was set back.
    const leftMs = Math.min(pauseMs, finished + pauseMs - this.#clock.now());
    return { at: this.#clock.elapsed() + leftMs, pauseMs };
  }

  /** In how many milliseconds it may be started again after its end; undefined when it may now. */
  restartDelay(pod: Pod): number | undefined {
    const end = this.#end;
    if (!end) return undefined;
    const finished = Date.parse(end.finishedAt as unknown as string) || this.#clock.now();
    this.#restart ??= this.#restartAfter(finished);
    const ms = this.#restart.at - this.#clock.elapsed();
    if (ms <= 0) return undefined;
    if (this.#state.waiting?.reason === "CrashLoopBackOff") return ms;
    const pause = Backoff.words(this.#restart.pauseMs);
    const { name, namespace, uid } = pod.metadata;
    const message = `back-off ${pause} restarting failed container=${this.name} pod=${name}_${namespace}(${uid})`;
    this.wait("CrashLoopBackOff", message);
    this.#note(
      "Warning",
      "BackOff",
      `Back-off restarting failed container ${this.name} in pod ${name}_${namespace}(${uid})`,
    );
    return ms;
  }

  /** Starts the next run. Throws a `ContainerConfigError` when the Pod's objects do not allow it. */
  async start(
    pod: Pod,
    sandbox: PodSandbox,
    image: LocalImage,
    objects: PodObjects,
    place: PodPlace,
  ): Promise<void> {
    this.#starting = true;
    try {
      const env = await environmentOf(pod, this.spec, image.config.Env ?? [], objects, place);
      const isolation = isolationOf(pod, this.spec, image.config.User ?? "");
      const mounts = mountsOf(
        this.spec,
        pod.spec?.volumes ?? [],
        sandbox.dir,
        new Map(Object.entries(env)),
        expand,
      );
      const argv = argvOf(this.spec, image.config, env);
      const end = this.#end;
      const run = end ? this.#restartCount + 1 : this.#restartCount;
      const files = prepareRunFiles(sandbox.dir, this.name, run);
      const process = await sandbox.start({
        name: this.name,
        run,
        image,
        argv,
        env,
        workingDir: this.spec.workingDir,
        mounts: [
          ...mounts,
          {
            mountPath: this.spec.terminationMessagePath ?? defaultTerminationLog,
            source: files.terminationLog,
          },
        ],
        ports: (this.spec.ports ?? []).map(({ containerPort }) => containerPort),
        // A server that ends is started again whatever its code; a task's code decides what is next.
        keepExitCode: this.isInit ? !this.isSidecar : pod.spec?.restartPolicy !== "Always",
        hostName: pod.spec?.hostname ?? pod.metadata.name ?? "",
        stdin: inputOf(this.spec),
        tty: this.spec.tty,
        isolation,
        ...files,
      });
      if (end) this.#lastState = { terminated: end };
      this.#restartCount = run;
      this.#restart = undefined;
      this.#imageId = `${(this.spec.image ?? "").replace(/[:@][^/]*$/, "")}@${image.digest}`;
      this.#note("Normal", "Created", `Created container: ${this.name}`);
      this.#attach(process, files, sandbox, { isAdopted: false, hadStarted: false });
      this.#note("Normal", "Started", `Started container ${this.name}`);
      this.#runPostStart(sandbox);
      if (process.hasWaited) await this.#readyInAMoment(process);
    } finally {
      this.#starting = false;
    }
  }

  /** So that one status says that it runs and is ready: a second one would have to wait until the first is written. */
  async #readyInAMoment({ ready, exited }: SandboxContainer): Promise<void> {
    const moment = Promise.withResolvers<void>();
    const cancel = this.#clock.after(momentMs, moment.resolve);
    await Promise.race([ready, exited, moment.promise]);
    cancel();
  }

  /** Takes over a process that an earlier agent started. */
  adopt(
    process: SandboxContainer,
    run: number,
    sandbox: PodSandbox,
    known: ContainerStatus | undefined,
  ): void {
    const hadStarted = known?.state?.running !== undefined && known.started === true;
    if (known && known.restartCount < run && known.state?.terminated)
      this.#lastState = { terminated: known.state.terminated };
    this.#restartCount = run;
    if (known?.imageID) this.#imageId = known.imageID;
    const files = runFilesOf(sandbox.dir, this.name, run);
    this.#attach(process, files, sandbox, { isAdopted: true, hadStarted });
    // It keeps its state until a probe reports otherwise.
    if (hadStarted && known.ready) this.#ready = true;
  }

  #attach(
    process: SandboxContainer,
    files: RunFiles,
    sandbox: PodSandbox,
    { isAdopted, hadStarted }: { isAdopted: boolean; hadStarted: boolean },
  ): void {
    this.#process = process;
    this.#end = undefined;
    this.#containerId = `spry://${process.id}`;
    this.#started = hadStarted;
    this.#ready = false;
    const startedAt = timeOf(process.startedAt);
    this.#state = { running: { startedAt: startedAt } };
    this.#log = new LogFile(files.logFile, this.#clock);
    this.#flooded = undefined;
    this.#log.open(() => this.#onFlood(), { isAdopted });
    this.#probes = new ContainerProbes(
      {
        ip: sandbox.ip,
        container: this.spec,
        guard: this.#guard,
        exec: (argv, options) => process.exec(argv, options),
      },
      {
        onStarted: () => this.#change(() => (this.#started = true)),
        onReady: (ready) => this.#change(() => (this.#ready = ready)),
        onUnhealthy: (kind) => this.#onUnhealthy(kind),
        onFailure: (kind, message) => this.#onProbeFailure(kind, message),
      },
      this.#clock,
    );
    this.#probes.start(hadStarted);
    const { ready, exited } = process;
    void ready.then(() => this.#process === process && this.#probes?.pushReady());
    this.#ended = exited.then((exit) => this.#onExit(process, exit, files, sandbox));
  }

  /** Wakes the Pod only when something that its status shows is different. */
  #change(apply: () => void): void {
    const before = `${this.#started}/${this.#ready}`;
    apply();
    if (before !== `${this.#started}/${this.#ready}`) this.#wake();
  }

  /** The flood that it has written helps no reader; the next run may do better, after a pause. */
  #onFlood(): void {
    this.#flooded = `Container ${this.name} wrote ${floodWords}`;
    this.#note("Warning", "LogFlood", this.#flooded);
    this.#unhealthy?.(`${this.#flooded}, will be restarted`, floodGraceSeconds);
  }

  #onProbeFailure(kind: ProbeKind, message: string): void {
    const name = kind[0]?.toUpperCase() + kind.slice(1);
    this.#note("Warning", "Unhealthy", `${name} probe failed: ${message}`);
  }

  #onUnhealthy(kind: "startup" | "liveness"): void {
    const message = `Container ${this.name} failed ${kind} probe, will be restarted`;
    this.#unhealthy?.(message, this.spec[`${kind}Probe`]?.terminationGracePeriodSeconds);
  }
  #unhealthy: ((message: string, graceSeconds?: number) => void) | undefined;

  /** How the Pod ends a container that a probe has given up, in the probe's own grace period if it has one. */
  onUnhealthy(end: (message: string, graceSeconds?: number) => void): void {
    this.#unhealthy = end;
  }

  async #onExit(
    process: SandboxContainer,
    exit: ExitStatus,
    files: RunFiles,
    { ip }: PodSandbox,
  ): Promise<void> {
    this.#probes?.stop();
    const wasReady = this.#ready;
    this.#ready = false;
    // It may have written much in its last moment.
    await this.#log?.settled();
    const message =
      this.#flooded ?? exit.message ?? (await terminationMessage(files, this.spec, exit.exitCode));
    // Nothing has served before it was ready, and an end that was asked for needs no explanation.
    const isFailure = exit.exitCode !== 0 && !this.#stopping;
    if (isFailure)
      await this.#explainEnd(exit, message ?? "", { files, ip: wasReady ? ip : undefined });
    if (this.#process !== process) return;
    this.#log?.close();
    this.#process = undefined;
    this.#started = false;
    this.#end = terminatedState(exit, message, {
      startedAt: process.startedAt,
      containerID: this.#containerId,
    });
    this.#state = { terminated: this.#end };
    if (exit.reason === "StartError") this.#note("Warning", "Failed", `Error: ${exit.message}`);
    this.#wake();
  }

  /** In the log, where a process that is killed leaves no word. `ip`: of one that has served. */
  async #explainEnd(
    exit: ExitStatus,
    message: string,
    { files: { logFile }, ip }: { files: RunFiles; ip: string | undefined },
  ): Promise<void> {
    const how = endInWords(exit, this.spec, message);
    const own = exit.reason === "OOMKilled" || isHeapFull(message) ? [how] : [];
    const others = ip === undefined ? undefined : this.#lastWords?.(ip, how);
    const lines = [...own, ...((await others?.catch(() => [])) ?? [])];
    if (lines.length > 0) await appendLines(logFile, lines).catch(() => {});
  }

  #runPostStart(sandbox: PodSandbox): void {
    const hook = this.spec.lifecycle?.postStart;
    const process = this.#process;
    if (!hook || !process) return;
    void runHook(
      hook,
      { ip: sandbox.ip, container: this.spec, process, guard: this.#guard },
      30_000,
      this.#clock,
    ).catch((error: unknown) => {
      this.#note("Warning", "FailedPostStartHook", `PostStartHook failed: ${messageOf(error)}`);
      this.#unhealthy?.("FailedPostStartHook");
    });
  }

  /**
   * Ends the present run: preStop hook, SIGTERM, and SIGKILL when the grace period is over, which the
   * hook is a part of. Resolves when it has ended. Asked again with a shorter period, the shorter one counts.
   */
  stop(graceMs: number, sandbox: PodSandbox, why?: string): Promise<void> {
    const process = this.#process;
    if (!process) return Promise.resolve();
    if (this.#stopping) killAfter(graceMs, process, this.#clock);
    else {
      this.#note("Normal", "Killing", why ?? `Stopping container ${this.name}`);
      this.#stopping = this.#terminate(process, graceMs, sandbox).finally(() => {
        this.#stopping = undefined;
      });
    }
    return this.#stopping;
  }

  async #terminate(process: SandboxContainer, graceMs: number, { ip }: PodSandbox): Promise<void> {
    const run = {
      ip,
      container: this.spec,
      process,
      guard: this.#guard,
      clock: this.#clock,
      onHookFailed: (message: string) => this.#note("Warning", "FailedPreStopHook", message),
    };
    await endGracefully(run, graceMs);
    await this.#ended;
  }

  /** Forgets the process without ending it. */
  release(): void {
    this.#probes?.stop();
    this.#log?.close();
    this.#process = undefined;
  }

  get log(): LogFile | undefined {
    return this.#log;
  }

  /** Whether its present or last run has that image. */
  usesImage(digest: string): boolean {
    return this.#imageId.endsWith(digest);
  }
}

/** With a terminal, standard input stays open even if no client may attach: otherwise the program would read its end. */
function inputOf({ stdin, stdinOnce, tty }: Container): InputMode | undefined {
  if (tty) return stdin && stdinOnce ? "terminal-once" : "terminal";
  if (!stdin) return undefined;
  return stdinOnce ? "once" : "open";
}
