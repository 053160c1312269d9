/**
 * Which process answers: the newest code's, or none while it cannot be loaded. A save starts the next one at once; requests
 * wait for it, and the old one finishes those that it has.
 */
import { type Failure, failureIn } from "../load-failure.ts";
import { type FailureReport } from "./load-report.ts";
import { ProcessGuard } from "./process-guard.ts";
import { type LaunchOptions, RuntimeProcess } from "./runtime-process.ts";

/** What processes are started with, and what they become. */
export interface SessionPlan {
  launch: Pick<LaunchOptions, "command" | "args" | "env">;
  root: string;
  /** All of the Function's environment. */
  env: Record<string, string>;
  /** One debugger at a time can have the port: the old process ends before the new one starts. */
  isInspected: boolean;
}

export interface SessionEvents {
  onOutput: LaunchOptions["onOutput"];
  onLoaded?: LaunchOptions["onLoaded"];
  onWritten?: LaunchOptions["onWritten"];
  /** New code answers; milliseconds since the save. */
  onReady: (milliseconds: number) => void;
  /** `report`: what the process wrote about it, which `onOutput` did not get; undefined where none wrote anything. */
  onFailure: (failure: Failure, report?: FailureReport) => void;
  /** A process that served has ended by itself. */
  onCrash: (sentence: string) => void;
}

const finishMs = 30_000;
const finishInspectedMs = 1000;
/** A process that ends sooner is not started again until something changes. */
const crashLoopMs = 1000;
/** A save can be several writes. */
const settleMs = 3;
/** Code that takes longer than this waits for something, and its user may save meanwhile. */
const longLoadMs = 5000;

type State =
  | { kind: "starting"; settled: Promise<void> }
  | { kind: "ready"; process: RuntimeProcess }
  | { kind: "failed"; failure: Failure };

/** Until the first `restart`. */
const noPlan: SessionPlan = {
  launch: { command: "", args: [], env: {} },
  root: "",
  env: {},
  isInspected: false,
};

export class Session {
  #plan = noPlan;
  readonly #events: SessionEvents;
  #state: State = { kind: "starting", settled: Promise.resolve() };
  #spare: RuntimeProcess | undefined;
  #serving: RuntimeProcess | undefined;
  readonly #all = new Set<RuntimeProcess>();
  readonly #guard: ProcessGuard;
  #round = 0;
  #loading: RuntimeProcess | undefined;
  #loadBegan = 0;
  #loadEnded = 0;
  /** Ends the waiting that `hold` began. */
  #release: () => void = () => {};
  #isClosed = false;

  /** `scratch`: the directory that goes when this process is killed. Requests wait until the first `restart` or `fail`. */
  constructor(events: SessionEvents, scratch: string) {
    this.#events = events;
    this.#guard = new ProcessGuard(scratch);
    this.hold();
  }

  /** Lets requests wait until the next `restart` or `fail`: what code needs is being prepared. */
  hold(): void {
    const before = this.#release;
    this.#round++;
    const settled = new Promise<void>((resolve) => (this.#release = resolve));
    this.#state = { kind: "starting", settled };
    before();
  }

  /** Starts the newest code. `plan`: what has changed besides the code. Resolves when it answers, or cannot. */
  restart(plan?: SessionPlan): Promise<void> {
    if (plan) this.#use(plan);
    const round = ++this.#round;
    const settled = this.#start(round, performance.now());
    this.#state = { kind: "starting", settled };
    this.#release();
    return settled;
  }

  /** Something other than the code is wrong: nothing answers until the next `restart`. */
  fail(failure: Failure): void {
    this.#round++;
    this.#state = { kind: "failed", failure };
    this.#release();
    this.#events.onFailure(failure);
    void this.#retireServing();
  }

  /** The process for a request, or why none can answer it. Waits while code is being loaded. */
  async current(): Promise<RuntimeProcess | Failure> {
    // A save that came before this request is noticed before it is passed on; the runner looks at it in the next round.
    for (let round = 0; round < 2; round++) await new Promise((resolve) => setImmediate(resolve));
    for (;;) {
      const state = this.#state;
      if (state.kind === "ready") return state.process;
      if (state.kind === "failed") return state.failure;
      await state.settled;
    }
  }

  /** Which load was under way at a time, as `Date.now()`; undefined where none was. */
  loadAt(time: number): number | undefined {
    const isLoading = this.#loading !== undefined || time <= this.#loadEnded;
    return isLoading && time - this.#loadBegan < longLoadMs ? this.#round : undefined;
  }

  /** What a process's handler threw for a request, for its user. */
  async thrownBy(process: RuntimeProcess, requestId: string): Promise<Failure | undefined> {
    const output = await process.thrownBy(requestId);
    return output === undefined ? undefined : failureIn(output, this.#plan.root);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#round++;
    this.#spare?.kill();
    await Promise.all([...this.#all].map((each) => each.stop()));
    this.#guard.close();
  }

  /** At once, for a process that is ending itself. */
  kill(): void {
    for (const each of this.#all) each.kill();
  }

  #use(plan: SessionPlan): void {
    const same = JSON.stringify(plan.launch) === JSON.stringify(this.#plan.launch);
    this.#plan = plan;
    if (same) return;
    this.#spare?.kill();
    this.#spare = undefined;
  }

  async #start(round: number, begin: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    // A newer start has taken over, and requests that wait for this one then wait for that.
    if (round !== this.#round) return;
    const { root, env, isInspected } = this.#plan;
    if (isInspected) await this.#retireServing();
    const next = this.#takeSpare();
    // What it loads is old by now, and it may never be done with that.
    void this.#loading?.stop();
    this.#loading = next;
    this.#loadBegan = Date.now();
    const ended = await next.serve(root, env);
    if (this.#loading === next) {
      this.#loading = undefined;
      this.#loadEnded = Date.now();
    }
    if (round !== this.#round || this.#isClosed) {
      void next.stop();
      return;
    }
    if (ended) {
      const failure = failureIn(ended.output, root);
      this.#state = { kind: "failed", failure };
      const { details } = failureIn(ended.report.toString(), root);
      const report = ended.report.length > 0 ? { raw: ended.report, details } : undefined;
      this.#events.onFailure(failure, report);
      void this.#retireServing();
    } else {
      void this.#retireServing();
      this.#serving = next;
      this.#state = { kind: "ready", process: next };
      this.#events.onReady(performance.now() - begin);
      void this.#watch(next);
    }
    // After the requests that waited: the machine is theirs first.
    setTimeout(() => this.#prepareSpare(), 30);
  }

  #takeSpare(): RuntimeProcess {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare && !spare.isEnded ? spare : this.#spawn();
  }

  #prepareSpare(): void {
    if (this.#isClosed || (this.#spare && !this.#spare.isEnded)) return;
    this.#spare = this.#spawn();
  }

  #spawn(): RuntimeProcess {
    const { onOutput, onLoaded, onWritten } = this.#events;
    const child = new RuntimeProcess({ ...this.#plan.launch, onOutput, onLoaded, onWritten });
    this.#all.add(child);
    const { pid } = child;
    if (pid !== undefined) this.#guard.add(pid);
    void this.#forgetWhenEnded(child, pid);
    return child;
  }

  async #forgetWhenEnded(child: RuntimeProcess, pid: number | undefined): Promise<void> {
    await child.ended;
    this.#all.delete(child);
    if (pid !== undefined) this.#guard.remove(pid);
  }

  async #retireServing(): Promise<void> {
    const old = this.#serving;
    this.#serving = undefined;
    await old?.retire(this.#plan.isInspected ? finishInspectedMs : finishMs);
  }

  /** A process that ends by itself is started again, as a container is, unless it does so at once. */
  async #watch(child: RuntimeProcess): Promise<void> {
    const since = performance.now();
    const { code, signal, output } = await child.ended;
    if (this.#serving !== child || this.#isClosed) return;
    this.#serving = undefined;
    const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
    const isLoop = performance.now() - since < crashLoopMs;
    this.#events.onCrash(`the Function's process ${how}${isLoop ? "" : "; it is started again"}`);
    if (!isLoop) return void this.restart();
    const { details } = failureIn(output, this.#plan.root);
    this.#state = { kind: "failed", failure: { summary: `the process ${how}`, details } };
  }
}
