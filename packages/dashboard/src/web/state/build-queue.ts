/** Which Functions wait for a build, and in which order they get one. */
import { type Function, labels } from "@spry/function/browser";
import { type Job } from "@spry/kube/browser";
import { conditionOf } from "./function-state.ts";

export interface WaitingBuild {
  namespace: string;
  name: string;
  /** RFC 3339 */
  since: string;
}

/** As the Function Controller writes it for those that wait for other builds, and for nothing else. */
const slotMessage = /build slot: at most (\d+) builds/;

export type BuildState = "failed" | "finished" | "running" | "waiting";

/** A Job without a Pod waits: it is suspended, or has just been created. */
export function buildStateOf({ status }: Job): BuildState {
  const has = (type: string) =>
    status?.conditions?.some((each) => each.type === type && each.status === "True") ?? false;
  if (has("Failed")) return "failed";
  if (has("Complete")) return "finished";
  return (status?.active ?? 0) > 0 ? "running" : "waiting";
}

/** How many builds there are in each state; those that have no Job yet wait, too. */
export function buildsText(jobs: readonly Job[], queue: readonly WaitingBuild[]): string {
  const count = (state: BuildState) => jobs.filter((job) => buildStateOf(job) === state).length;
  const waiting = count("waiting") + queue.length;
  return `${count("running")} running, ${waiting} waiting, ${count("failed")} failed`;
}

const isUnfinished = (job: Job): boolean => ["running", "waiting"].includes(buildStateOf(job));

/** How many builds may run at a time, from what waiting Functions say; undefined when none waits. */
export function buildLimitOf(functions: readonly Function[]): number | undefined {
  for (const fn of functions) {
    const limit = slotMessage.exec(conditionOf(fn, "BuildReady")?.message ?? "")?.[1];
    if (limit !== undefined) return Number(limit);
  }
  return undefined;
}

/**
 * Those that wait, the next first, by the controller's rule: the namespace with the fewest builds in progress, of those the one
 * whose last turn is longest ago, and within a namespace in the order in which they came.
 */
export function buildQueue(functions: readonly Function[], jobs: readonly Job[]): WaitingBuild[] {
  const queues = Map.groupBy(waitingOf(functions), ({ namespace }) => namespace);
  const load = new Map<string, number>();
  const turns = new Map<string, number>();
  for (const job of jobs) {
    const { namespace = "", creationTimestamp = "", labels: own } = job.metadata;
    if (own?.[labels.functionName] === undefined) continue;
    if (isUnfinished(job)) load.set(namespace, (load.get(namespace) ?? 0) + 1);
    const time = Date.parse(creationTimestamp) || 0;
    turns.set(namespace, Math.max(turns.get(namespace) ?? 0, time));
  }
  const order: WaitingBuild[] = [];
  for (let turn = Date.now(); queues.size > 0; turn++) {
    const [namespace = ""] = [...queues.keys()].sort(
      (a, b) =>
        (load.get(a) ?? 0) - (load.get(b) ?? 0) || (turns.get(a) ?? 0) - (turns.get(b) ?? 0),
    );
    const queue = queues.get(namespace) ?? [];
    order.push(...queue.splice(0, 1));
    load.set(namespace, (load.get(namespace) ?? 0) + 1);
    turns.set(namespace, turn);
    if (queue.length === 0) queues.delete(namespace);
  }
  return order;
}

function waitingOf(functions: readonly Function[]): WaitingBuild[] {
  return functions
    .flatMap((fn): WaitingBuild[] => {
      const condition = conditionOf(fn, "BuildReady");
      if (!slotMessage.test(condition?.message ?? "")) return [];
      const { namespace = "", name = "" } = fn.metadata;
      return [{ namespace, name, since: condition?.lastTransitionTime ?? "" }];
    })
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}
