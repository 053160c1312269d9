import { annotations, type BuildStatus, buildKey, managedBy, names } from "@spry/function";
import {
  isAlreadyExists,
  isControlledBy,
  isForbidden,
  isInvalid,
  messageOf,
  type Job,
  resources,
  type Clock,
} from "@spry/kube";
import { type BuildResult, buildResult } from "../build-result.ts";
import { isFinished } from "../build-slots.ts";
import { deleteIfThere, stamped } from "../children.ts";
import { conditionOf } from "../conditions.ts";
import { desiredBuildJob } from "../desired/build-job.ts";
import { type RegistryAddresses, registryOf } from "../registry.ts";
import { type Deps, type Draft, type Outcome, type Stage } from "../stage.ts";

/**
 * Gets the image of the Function's build key: from an earlier build if there is one, else by a Job.
 * What is known is in `status.build`, so that neither a restart nor a cleaned-up Job repeats a build.
 */
export const buildImage: Stage = {
  name: "build",
  condition: "BuildReady",

  async run(draft, deps) {
    const key = buildKey(draft.fn);
    draft.buildKey = key;
    const { registrySecrets, serviceAccounts } = deps.caches;
    const registry = registryOf(registrySecrets.get(`${draft.namespace}/${names.registrySecret}`));
    await dropObsoleteJobs(draft, key, deps);
    const image = knownImage(draft, key, registry, deps);
    if (image) return built(draft, key, image, deps);

    const account = serviceAccounts.get(`${draft.namespace}/${names.serviceAccount}`);
    if (!registry || !account) {
      deps.slots.leave(draft.key);
      const missing = registry
        ? `ServiceAccount ${names.serviceAccount}`
        : `Secret ${names.registrySecret} with the registry's addresses`;
      const message = `waiting for ${missing} in namespace ${draft.namespace}`;
      return { kind: "wait", reason: "JobWaiting", message };
    }
    const job = deps.caches.jobs.get(`${draft.namespace}/${names.buildJob(draft.name, key)}`);
    if (!job) return start(draft, key, registry, deps);
    return follow(draft, key, registry, job, deps);
  },
};

/** Unfinished builds of what the Function no longer says; of finished ones the last few stay for a way back. */
async function dropObsoleteJobs({ key, name, fn }: Draft, buildKey: string, deps: Deps) {
  const current = names.buildJob(name, buildKey);
  const others = deps.caches.jobs
    .byIndex("function", key)
    .filter((job) => job.metadata.name !== current && isControlledBy(job, fn));
  const born = (job: Job) => job.metadata.creationTimestamp ?? "";
  const finished = others.filter(isFinished).sort((a, b) => born(b).localeCompare(born(a)));
  const kept = new Set(finished.slice(0, keptJobs));
  for (const job of others) {
    if (!kept.has(job)) await deleteIfThere(deps.client, resources.jobs, job);
  }
}

const keptJobs = 3;

/** The image of this key, if it has been built before and is in the registry now in use. */
function knownImage(
  { key, namespace, name, status }: Draft,
  buildKey: string,
  registry: RegistryAddresses | undefined,
  { caches }: Deps,
): string | undefined {
  const deployment = caches.deployments.get(key);
  const container = deployment?.spec?.template.spec?.containers.find(
    (each) => each.name === names.container,
  );
  const known = [
    { key: status.build?.key, image: status.build?.image },
    { key: deployment?.metadata.annotations?.[annotations.buildKey], image: container?.image },
  ];
  const prefix = registry ? `${registry.pull}/${names.repository(namespace, name)}@` : "";
  return known.find((each) => each.key === buildKey && each.image?.startsWith(prefix))?.image;
}

function built(draft: Draft, key: string, image: string, deps: Deps): Outcome {
  const { status } = draft;
  const job = names.buildJob(draft.name, key);
  deps.slots.leave(draft.key);
  draft.image = image;
  const before = conditionOf(status, "BuildReady");
  if (status.build?.key === key && status.build.image === image && before?.status === "True") {
    return { kind: "done", reason: before.reason, message: before.message };
  }
  status.build = { key, image };
  return { kind: "done", reason: "JobFinished", message: `Job ${job} finished` };
}

async function start(
  draft: Draft,
  key: string,
  registry: RegistryAddresses,
  deps: Deps,
): Promise<Outcome> {
  const { fn, status } = draft;
  const { slots, settings, client, clock } = deps;
  const earlier = status.build?.key === key ? status.build : undefined;
  const failure = conditionOf(status, "BuildReady");
  if (earlier && failure?.reason === "JobFailed") {
    const { reason, message } = failure;
    const ms = retryInMs(earlier, clock);
    if (ms === undefined) return { kind: "stop", reason, message };
    if (ms > 0) return { kind: "wait", reason, message, recheckAfterMs: ms };
  }
  if (!slots.tryEnter(draft.key)) {
    const message = `waiting for a free build slot: ${settings.maxSimultaneousBuilds} builds run at a time`;
    return { kind: "wait", reason: "JobWaiting", message };
  }
  const job = stamped(desiredBuildJob(fn, settings, { buildKey: key, registry }), fn);
  try {
    await client.create(resources.jobs, job, { fieldManager: managedBy });
  } catch (error) {
    // The cache may not show it yet; then its event brings the next pass.
    if (!isAlreadyExists(error)) {
      slots.leave(draft.key);
      if (!isForbidden(error) && !isInvalid(error)) throw error;
      const message = `Job ${job.metadata.name} cannot be created: ${messageOf(error)}`;
      return { kind: "wait", reason: "JobWaiting", message, recheckAfterMs: refusedRecheckMs };
    }
  }
  status.build = unfinished(key, earlier);
  return { kind: "wait", reason: "JobCreated", message: `Job ${job.metadata.name} created` };
}

async function follow(
  draft: Draft,
  key: string,
  registry: RegistryAddresses,
  job: Job,
  deps: Deps,
): Promise<Outcome> {
  const { status, namespace, name } = draft;
  const pods = deps.caches.pods.byIndex("function", draft.key);
  const result = buildResult(job, pods);
  const jobName = job.metadata.name ?? "";
  const foreign = !isControlledBy(job, draft.fn);
  // A failure from before the Function came (back) to this source is no verdict on this try.
  const stale = isFailure(result) && status.build?.key !== key;
  if (foreign || stale || job.metadata.deletionTimestamp) {
    return replace(draft, job, deps);
  }
  switch (result.kind) {
    case "succeeded": {
      const repository = names.repository(namespace, name);
      return built(draft, key, `${registry.pull}/${repository}@${result.digest}`, deps);
    }
    case "refused":
      status.build = { key };
      return {
        kind: "stop",
        reason: "JobFailed",
        message: `Job ${jobName} failed: ${result.message}`,
      };
    case "broke":
      return tryAgain(draft, key, job, result.message, deps);
    case "running":
      status.build = unfinished(key, status.build);
      return inProgress(draft, jobName, result);
  }
}

function inProgress(
  { status }: Draft,
  job: string,
  { started, detail }: BuildResult & { kind: "running" },
): Outcome {
  const before = conditionOf(status, "BuildReady");
  const created = `Job ${job} created`;
  if (!started && !detail && before?.message === created) {
    return { kind: "wait", reason: "JobCreated", message: created };
  }
  const message = `Job ${job} is still in progress${detail ? `: ${detail}` : ""}`;
  return { kind: "wait", reason: "JobRunning", message };
}

const isFailure = ({ kind }: BuildResult) => kind === "refused" || kind === "broke";

/** Waits its turn, longer each time, with the failed Job kept for its logs until then. */
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
  if (ms !== undefined && ms <= 0) return replace(draft, job, deps);
  const text = `Job ${job.metadata.name} failed, it will be re-run: ${message}`;
  if (ms !== undefined) {
    return { kind: "wait", reason: "JobFailed", message: text, recheckAfterMs: ms };
  }
  const failures = (before.failures ?? 0) + 1;
  const pause = Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs);
  const retryAfter = new Date(deps.clock.now() + pause).toISOString();
  status.build = { key, failures, retryAfter };
  return { kind: "wait", reason: "JobFailed", message: text, recheckAfterMs: pause };
}

/** Somebody's quota or policy says no, and may say yes later. */
const refusedRecheckMs = 30_000;
const firstRetryMs = 5000;
const lastRetryMs = 300_000;

/** Undefined: not to be tried again. */
function retryInMs({ retryAfter }: BuildStatus, clock: Clock): number | undefined {
  return retryAfter === undefined ? undefined : Date.parse(retryAfter) - clock.now();
}

/** Deletes a Job that stands in the way of its successor; that it is gone brings the next pass. */
async function replace({ status }: Draft, job: Job, { client }: Deps): Promise<Outcome> {
  await deleteIfThere(client, resources.jobs, job);
  if (status.build) delete status.build.retryAfter;
  return { kind: "wait", reason: "JobsDeleted", message: "Old Jobs deleted" };
}

/** The record of a build that has no result, with the failures that it goes on counting. */
function unfinished(key: string, before: BuildStatus | undefined): BuildStatus {
  return before?.key === key && before.failures ? { key, failures: before.failures } : { key };
}
