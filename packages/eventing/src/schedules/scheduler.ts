import {
  cronProblem,
  type Function,
  functions,
  type FunctionSchedule,
  timeZoneProblem,
} from "@spry/function";
import {
  type Clock,
  EventRecorder,
  Informer,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  type ObjectKey,
  onClockSet,
} from "@spry/kube";
import { type Queue } from "@spry/queue";
import { type Call, callBucket, hasEnded } from "../calls/call.ts";
import { type NamespaceClaims } from "../calls/namespace-claims.ts";
import { type CallRunner } from "../calls/runner.ts";
import { type CallSubmitter } from "../calls/submit.ts";
import { nextRun } from "./next-run.ts";
import {
  deadlineMsOf,
  isoTime,
  keepSchedule,
  keptSchedule,
  type KeptSchedule,
  maxSchedules,
  scheduleBucket,
  schedulesOf,
  submitRun,
} from "./submit-run.ts";

export interface SchedulerDeps {
  client: KubeClient;
  queue: Queue;
  submitter: CallSubmitter;
  runner: CallRunner;
  claims: NamespaceClaims;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

interface Running {
  text: string;
  cancel: () => void;
}

/** The longest delay of a timer, and the period in which the last missed run is looked for. */
const longestMs = 3_600_000;
const retryMs = 5_000;

/** Calls Functions when `spec.schedules` says so; between two runs there is no Pod for it, and nothing but a timer. */
export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #cache: Informer<Function>;
  readonly #running = new Map<string, Running>();
  readonly #recorder: EventRecorder;

  constructor(deps: SchedulerDeps) {
    const { client, clock, log } = deps;
    this.#deps = deps;
    this.#recorder = new EventRecorder({ client, component: "eventing", clock, log });
    this.#cache = new Informer(client, functions, {
      clock,
      log,
      maxRetryMs: 1_000,
      mayBeMissing: true,
      transform: ({ apiVersion, kind, metadata, spec }) =>
        ({ apiVersion, kind, metadata, spec: { schedules: spec.schedules } }) as Function,
    });
  }

  async run(): Promise<void> {
    const { signal, clock } = this.#deps;
    this.#cache.onChange(({ object }) => this.#refresh(keyOf(object)));
    onClockSet(clock, () => this.#planAll(), signal);
    await this.#cache.run(signal);
    for (const { cancel } of this.#running.values()) cancel();
  }

  /** Times are the machine's clock's, which has been set: timers are for other times now. */
  #planAll(): void {
    for (const [id, { text, cancel }] of this.#running) {
      cancel();
      const key = id.slice(0, id.lastIndexOf("/"));
      const schedule = JSON.parse(text) as FunctionSchedule;
      if (problemOf(schedule) === undefined) void this.#plan(key, id, schedule);
    }
  }

  #schedulesOf(key: ObjectKey): FunctionSchedule[] {
    return schedulesOf(this.#cache.get(key));
  }

  #refresh(key: ObjectKey): void {
    const wanted = new Map(
      this.#schedulesOf(key)
        .filter(({ suspend }) => suspend !== true)
        .map((schedule) => [`${key}/${schedule.name}`, schedule]),
    );
    for (const [id, running] of this.#running) {
      if (!id.startsWith(`${key}/`)) continue;
      if (JSON.stringify(wanted.get(id)) === running.text) wanted.delete(id);
      else {
        running.cancel();
        this.#running.delete(id);
      }
    }
    for (const [id, schedule] of wanted) {
      this.#running.set(id, { text: JSON.stringify(schedule), cancel: () => {} });
      const problem = problemOf(schedule);
      // Admission refuses it; what is stored all the same is not tried again until it changes.
      if (problem !== undefined) {
        this.#note(key, "InvalidSchedule", `schedule ${schedule.name}: ${problem}`);
        continue;
      }
      void this.#plan(key, id, schedule);
    }
    if (!this.#cache.get(key)) void this.#forget(key);
  }

  /** Its schedules begin again if the Function comes back. */
  async #forget(key: ObjectKey): Promise<void> {
    const { queue } = this.#deps;
    const kept = await queue.list(scheduleBucket, { after: `${key}/`, limit: maxSchedules });
    for (const record of kept)
      if (record.key.startsWith(`${key}/`)) await queue.remove(scheduleBucket, record.key);
  }

  async #plan(key: ObjectKey, id: string, schedule: FunctionSchedule): Promise<void> {
    const { clock, log, signal } = this.#deps;
    const isCurrent = () =>
      !signal.aborted && this.#running.get(id)?.text === JSON.stringify(schedule);
    const again = (ms: number) => {
      const running = this.#running.get(id);
      if (!running || !isCurrent()) return;
      // There may be one of another look at it.
      running.cancel();
      running.cancel = clock.after(ms, () => void this.#plan(key, id, schedule));
    };
    try {
      if (!isCurrent()) return;
      await this.#deps.claims.claim(this.#deps.queue, key.split("/")[0] ?? "");
      const now = clock.now();
      const kept = await this.#kept(id, schedule, now);
      const due = this.#lastDue(schedule, Date.parse(kept.seenUpTo), now);
      if (due !== undefined) {
        if (now - due > deadlineMsOf(schedule)) {
          await keepSchedule(this.#deps.queue, id, { ...kept, seenUpTo: isoTime(due) });
          this.#note(
            key,
            "MissedSchedule",
            `run of schedule ${schedule.name} due at ${isoTime(due)} was missed`,
          );
        } else await this.#submit(key, schedule, due, kept);
        return again(0);
      }
      const next = nextRun(schedule.cron, schedule.timeZone ?? "UTC", now);
      if (next !== undefined) again(Math.min(next - now, longestMs));
    } catch (error) {
      if (!isCurrent()) return;
      log.warn(
        { schedule: id, error: messageOf(error) },
        "running a schedule failed, trying again",
      );
      this.#note(key, "ScheduleFailed", `schedule ${schedule.name}: ${messageOf(error)}`);
      again(retryMs);
    }
  }

  /** The last of several missed runs; starting it marks the others as past. */
  #lastDue({ cron, timeZone = "UTC" }: FunctionSchedule, since: number, now: number) {
    const first = nextRun(cron, timeZone, since);
    if (first === undefined || first > now) return undefined;
    // From a recent time on: a schedule for each minute may have missed a year of runs.
    const recent = nextRun(cron, timeZone, Math.max(since, now - longestMs));
    let last = recent !== undefined && recent <= now ? recent : first;
    for (let next = nextRun(cron, timeZone, last); next !== undefined && next <= now;) {
      last = next;
      next = nextRun(cron, timeZone, last);
    }
    return last;
  }

  async #kept(id: string, schedule: FunctionSchedule, now: number): Promise<KeptSchedule> {
    const { queue } = this.#deps;
    const kept = await keptSchedule(queue, id);
    if (kept && !isSilent(schedule, Date.parse(kept.seenUpTo), now)) return kept;
    const begun = kept && { ...kept, begun: (kept.begun ?? 0) + 1 };
    const present = { ...begun, seenUpTo: isoTime(now) };
    await keepSchedule(queue, id, present);
    return present;
  }

  /** `kept.lastCall` is that of the run before, for schedules whose runs must not overlap. */
  async #submit(
    key: ObjectKey,
    schedule: FunctionSchedule,
    due: number,
    before: KeptSchedule,
  ): Promise<string> {
    const { queue, submitter, runner, clock } = this.#deps;
    const [namespace = ""] = key.split("/");
    const { lastCall } = before;
    const kept = { ...before, seenUpTo: isoTime(due) };
    if (schedule.overlap === "Skip" && lastCall !== undefined) {
      const text = await queue.get(callBucket(namespace), lastCall);
      if (text !== undefined && !hasEnded(JSON.parse(text) as Call)) {
        this.#note(
          key,
          "SkippedSchedule",
          `run of schedule ${schedule.name}: the one before has not ended`,
        );
        await keepSchedule(queue, `${key}/${schedule.name}`, kept);
        return lastCall;
      }
    }
    await runner.ensure(key);
    return submitRun({ queue, submitter }, key, schedule, { due, now: clock.now(), kept });
  }

  #note(key: ObjectKey, reason: string, message: string): void {
    const fn = this.#cache.get(key);
    if (fn) this.#recorder.record(functions, fn, { type: "Warning", reason, message });
  }
}

/**
 * The clock has been set back so far that more than a whole period would pass without a run: those that come are made, although runs
 * of these times have been. After a smaller step, the next run is the first one that has not been made.
 */
function isSilent(
  { cron, timeZone = "UTC" }: FunctionSchedule,
  seenUpTo: number,
  now: number,
): boolean {
  if (seenUpTo <= now) return false;
  const next = nextRun(cron, timeZone, seenUpTo);
  return next !== undefined && seenUpTo - now > next - seenUpTo;
}

/** Why nothing would ever run. */
function problemOf({ cron, timeZone }: FunctionSchedule): string | undefined {
  return cronProblem(cron) ?? (timeZone === undefined ? undefined : timeZoneProblem(timeZone));
}
