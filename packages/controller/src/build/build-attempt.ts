/**
 * One attempt to build an image: a Job that is created, watched, and replaced if the environment made it
 * fail. `status.build` records the attempts: a key without retry time and image, together with
 * JobFailed, is a mistake in the source, which is not built again.
 */
import {
  type BuildStatus,
  type Function,
  functions,
  managedBy,
  names,
  retryDemandOf,
} from "@spry/function";
import {
  type Clock,
  type Event,
  isAlreadyExists,
  isControlledBy,
  type Job,
  keyOf,
  resources,
} from "@spry/kube";
import { type BuildResult, buildResult } from "./build-result.ts";
import { deleteIfThere, stamped } from "../children.ts";
import { conditionOf } from "../function/conditions.ts";
import { desiredBuildJob } from "./build-job.ts";
import { type ActiveRegistry } from "../registry/registry.ts";
import { type Deps, type Draft, type Outcome } from "../function/stage.ts";
import { refused, refusedRecheckMs } from "../function/stages/refused.ts";

/** A Job's Pod exists within moments; after this time its Events are read for the reason. */
const podPatienceMs = 3_000;
const firstRetryMs = 5000;
const lastRetryMs = 300_000;

/** Creates the Job, if it is this Function's turn, unless the last attempt rules it out. */
export async function startAttempt(
  draft: Draft,
  key: string,
  registry: ActiveRegistry,
  deps: Deps,
): Promise<Outcome> {
  const { fn, status } = draft;
  const { slots, settings, client, clock } = deps;
  const earlier = status.build?.key === key ? status.build : undefined;
  const failure = conditionOf(status, "BuildReady");
  const isDemanded = retryDemandOf(fn) !== (earlier?.retriedFor ?? "");
  if (earlier && failure?.reason === "JobFailed" && !isDemanded) {
    const { reason, message } = failure;
    const ms = retryInMs(earlier, clock);
    if (ms === undefined) return { kind: "stop", reason, message };
    if (ms > 0) return { kind: "wait", reason, message, recheckAfterMs: ms };
  }
  if (!slots.tryEnter(draft.key)) {
    const message = `waiting for a free build slot: at most ${settings.maxSimultaneousBuilds} builds run at a time`;
    return { kind: "wait", reason: "JobWaiting", message };
  }
  const loginSecret = deps.buildLogins.newName(
    names.buildJob(draft.name, key),
    registry,
    deps.registry,
  );
  const previousImage = imageBefore(draft, registry, deps);
  const inputs = { buildKey: key, registry, commit: draft.commit, loginSecret, previousImage };
  const job = stamped(desiredBuildJob(fn, settings, inputs), fn);
  let created: Job | undefined;
  try {
    created = await client.create(resources.jobs, job, { fieldManager: managedBy });
  } catch (error) {
    // The cache may not show it yet; then its event brings the next pass.
    if (!isAlreadyExists(error)) {
      slots.leave(draft.key);
      const describe = (text: string) => `Job ${job.metadata.name} cannot be created: ${text}`;
      return refused(error, "JobWaiting", { describe, invalid: "wait" });
    }
  }
  status.build = attemptOf(key, fn, isDemanded ? undefined : earlier);
  // If that is refused, the next pass reports why.
  if (created) await deps.buildLogins.ensure(draft, created, deps);
  return { kind: "wait", reason: "JobCreated", message: `Job ${job.metadata.name} created` };
}

/** The digest of the image that serves until the new one does, if it is in the same registry. */
function imageBefore({ key }: Draft, { pull }: ActiveRegistry, { caches }: Deps) {
  const containers = caches.deployments.get(key)?.spec?.template.spec?.containers;
  const image = containers?.find(({ name }) => name === names.container)?.image;
  return image?.startsWith(`${pull}/`) ? image.split("@")[1] : undefined;
}

/** Reads the Job's state, and decides about another attempt. */
export async function followAttempt(
  draft: Draft,
  key: string,
  job: Job,
  deps: Deps,
): Promise<Outcome | { kind: "built"; digest: string }> {
  const { status } = draft;
  const pods = deps.caches.pods.byIndex("function", draft.key);
  const result = buildResult(job, pods);
  const jobName = job.metadata.name ?? "";
  const foreign = !isControlledBy(job, draft.fn);
  // A failure from before the Function came (back) to this source says nothing about this attempt.
  const stale = isFailure(result) && status.build?.key !== key;
  if (foreign || stale || job.metadata.deletionTimestamp) {
    return replaceJob(draft, job, deps);
  }
  // The cause may be gone, and a person waits for it.
  if (isFailure(result) && retryDemandOf(draft.fn) !== retryDemandOf(job)) {
    status.build = { key };
    return replaceJob(draft, job, deps);
  }
  switch (result.kind) {
    case "succeeded":
      if (result.leftOut)
        deps.events.record(functions, draft.fn, {
          type: "Warning",
          reason: "SourceIncomplete",
          message: result.leftOut.join("; "),
        });
      return { kind: "built", digest: result.digest };
    case "refused":
      status.build = attemptOf(key, job);
      return {
        kind: "stop",
        reason: "JobFailed",
        message: `Job ${jobName} failed: ${result.message}`,
      };
    case "broke":
      if (isInterruption(draft, job, deps)) return replaceJob(draft, job, deps);
      return tryAgain(draft, key, job, result.message, deps);
    case "running":
      status.build = attemptOf(key, job, status.build);
      // An earlier controller may have been killed between Job and Secret.
      const detail = result.started ? undefined : await deps.buildLogins.ensure(draft, job, deps);
      if (detail)
        return {
          ...inProgress(draft, jobName, { ...result, detail }),
          recheckAfterMs: refusedRecheckMs,
        };
      if (result.started || result.detail) return inProgress(draft, jobName, result);
      return withoutPod(draft, job, result, deps);
  }
}

/** What prevents a Job's Pod (a quota, a policy) is reported only by the Job's Events. */
async function withoutPod(
  draft: Draft,
  job: Job,
  result: BuildResult & { kind: "running" },
  { client, clock, caches }: Deps,
): Promise<Outcome> {
  const { name = "", namespace, uid, creationTimestamp = "" } = job.metadata;
  const pods = caches.pods.byIndex("function", draft.key);
  if (pods.some((pod) => isControlledBy(pod, job))) return inProgress(draft, name, result);
  const leftMs = Date.parse(creationTimestamp) + podPatienceMs - clock.now();
  if (leftMs > 0 && leftMs <= podPatienceMs + 1_000)
    return { ...inProgress(draft, name, result), recheckAfterMs: leftMs };
  const fieldSelector = `involvedObject.uid=${uid},reason=FailedCreate`;
  const { items } = await client.list(resources.events, { namespace, fieldSelector });
  const time = ({ lastTimestamp, metadata }: Event) => lastTimestamp ?? metadata.creationTimestamp;
  const newest = items.toSorted((a, b) => ((time(a) ?? "") < (time(b) ?? "") ? 1 : -1))[0];
  const detail = newest?.message ? `its Pod cannot be created: ${nameless(newest.message)}` : "";
  const outcome = inProgress(draft, name, detail ? { ...result, detail } : result);
  return { ...outcome, recheckAfterMs: refusedRecheckMs };
}

/** Each attempt has another Pod name: with it, the message would change every time. */
function nameless(message: string): string {
  return message
    .replace(/^Error creating: (?:pods "[^"]+" is forbidden: )?/, "")
    .replace(/^(Pod|pods) "[^"]+"/, "Pod");
}

function inProgress(
  { status }: Draft,
  job: string,
  { started, detail }: BuildResult & { kind: "running" },
): Outcome & { kind: "wait" } {
  const before = conditionOf(status, "BuildReady");
  const created = `Job ${job} created`;
  if (!started && !detail && before?.message === created) {
    return { kind: "wait", reason: "JobCreated", message: created };
  }
  const message = `Job ${job} is still in progress${detail ? `: ${detail}` : ""}`;
  return { kind: "wait", reason: "JobRunning", message };
}

const isFailure = ({ kind }: BuildResult) => kind === "refused" || kind === "broke";

/** Whether the build was under way at a restart of the platform, and its failure is not on record already. */
function isInterruption({ status }: Draft, job: Job, { inherited, log }: Deps): boolean {
  if (!inherited.has(job) || status.build?.retryAfter !== undefined) return false;
  log.info({ job: keyOf(job) }, "a build was interrupted by a restart, it is run again");
  return true;
}

/** Waits, longer after each failure; the failed Job and its logs are kept until then. */
async function tryAgain(
  draft: Draft,
  key: string,
  job: Job,
  message: string,
  deps: Deps,
): Promise<Outcome> {
  const { status } = draft;
  const before = status.build?.key === key ? status.build : { key };
  const ms = retryInMs(before, deps.clock);
  if (ms !== undefined && ms <= 0) return replaceJob(draft, job, deps);
  const text = `Job ${job.metadata.name} failed, it will be re-run: ${message}`;
  if (ms !== undefined) {
    return { kind: "wait", reason: "JobFailed", message: text, recheckAfterMs: ms };
  }
  const failures = (before.failures ?? 0) + 1;
  const pause = Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs);
  const retryAfter = new Date(deps.clock.now() + pause).toISOString();
  status.build = { ...attemptOf(key, job), failures, retryAfter };
  return { kind: "wait", reason: "JobFailed", message: text, recheckAfterMs: pause };
}

/** Undefined: no further attempt. */
function retryInMs({ retryAfter }: BuildStatus, clock: Clock): number | undefined {
  if (retryAfter === undefined) return undefined;
  const ms = Date.parse(retryAfter) - clock.now();
  // No pause is so long: the machine's clock has been set back since.
  return ms > lastRetryMs + 1_000 ? 0 : ms;
}

/** Deletes a Job that blocks its successor; the end of the deletion triggers the next pass. */
export async function replaceJob({ status }: Draft, job: Job, { client }: Deps): Promise<Outcome> {
  await deleteIfThere(client, resources.jobs, job);
  if (status.build) delete status.build.retryAfter;
  return { kind: "wait", reason: "JobsDeleted", message: "Old Jobs deleted" };
}

/** The record of an attempt that has no image, with the failures counted so far. `of`: its Job, or the Function that it is made for. */
function attemptOf(key: string, of: Job | Function, before?: BuildStatus): BuildStatus {
  const retriedFor = retryDemandOf(of);
  return {
    key,
    ...(before?.key === key && before.failures ? { failures: before.failures } : {}),
    ...(retriedFor ? { retriedFor } : {}),
  };
}
