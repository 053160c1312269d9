import { annotations, buildKey, names } from "@spry/function";
import { isControlledBy, type Job, resources } from "@spry/kube";
import { isFinished } from "../../build/build-slots.ts";
import { deleteIfThere } from "../../children.ts";
import { conditionOf } from "../conditions.ts";
import { ownRevisions } from "../known-revision.ts";
import {
  activeRegistry,
  type RegistryAddresses,
  repositoriesIn,
  repositoryIn,
} from "../../registry/registry.ts";
import { type Deps, type Draft, type Outcome, type Stage } from "../stage.ts";
import { isDestination } from "../../build/build-job.ts";
import { followAttempt, replaceJob, startAttempt } from "../../build/build-attempt.ts";

/**
 * Gets the image of the Function's build key: from an earlier build if there is one, else by a Job.
 * What is known is in `status.build`, so that neither a restart nor a cleaned-up Job repeats a
 * build.
 */
export const buildImage: Stage = {
  name: "build",
  condition: "BuildReady",

  async run(draft, deps) {
    const key = buildKey(draft.fn, draft.commit);
    const { serviceAccounts } = deps.caches;
    const registry = activeRegistry(deps.caches, draft.namespace);
    const obsoleteInMs = await dropObsoleteJobs(draft, key, deps);
    const later = obsoleteInMs === undefined ? {} : { recheckAfterMs: obsoleteInMs };
    const image = knownImage(draft, key, registry, deps);
    const old = deps.caches.jobs.get(`${draft.namespace}/${names.buildJob(draft.name, key)}`);
    const pods = deps.caches.pods.byIndex("function", draft.key);
    if (image && deps.lost.begin(draft.key, key, image, pods)) {
      draft.status.build = { key };
      if (old) return replaceJob(draft, old, deps);
    }
    if (image && !deps.lost.isUnderWay(draft.key, key))
      return { ...built(draft, key, image, deps), ...later };

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
    if (!job) return startAttempt(draft, key, registry, deps);
    // It pushes, or has pushed, to where the images went before.
    const pushesTo = job.metadata.annotations?.[annotations.registry];
    if (pushesTo !== undefined && pushesTo !== registry.pull) return replaceJob(draft, job, deps);
    const repository = repositoryIn(registry, draft.namespace, draft.name);
    if (!isDestination(job, `/${repository}:${key}`)) return replaceJob(draft, job, deps);
    const outcome = await followAttempt(draft, key, job, deps);
    if (outcome.kind !== "built") return outcome;
    deps.lost.built(draft.key);
    const name = `${registry.pull}/${repository}@${outcome.digest}`;
    return { ...built(draft, key, name, deps), ...later };
  },

  // Without a valid source there is nothing to wait for a build slot with; after an error, others may have the place.
  release: (key, { slots }) => slots.leave(key),

  forget(key, { slots, lost }) {
    slots.leave(key);
    lost.forget(key);
  },
};

/**
 * Unfinished builds of what the Function no longer says; of finished ones the last few stay for a
 * way back, and more at first: while a version is on its way, a user may be waiting for it. Returns when to look again.
 */
async function dropObsoleteJobs(
  { key, namespace, name, fn }: Draft,
  buildKey: string,
  { caches, client, clock }: Deps,
): Promise<number | undefined> {
  const current = caches.jobs.get(`${namespace}/${names.buildJob(name, buildKey)}`);
  const born = (job: Job) => job.metadata.creationTimestamp ?? "";
  const quietInMs = current ? Date.parse(born(current)) + busyMs - clock.now() : busyMs;
  const others = caches.jobs
    .byIndex("function", key)
    .filter((job) => job !== current && isControlledBy(job, fn));
  const finished = others.filter(isFinished).sort((a, b) => born(b).localeCompare(born(a)));
  const kept = new Set(finished.slice(0, quietInMs > 0 ? mostJobs : keptJobs));
  for (const job of others) if (!kept.has(job)) await deleteIfThere(client, resources.jobs, job);
  return quietInMs > 0 && finished.length > keptJobs ? quietInMs : undefined;
}

const keptJobs = 3;
const mostJobs = 20;
/** From the start of a build. */
const busyMs = 10_000;

/** The image of this key, if it has been built before and is in the registry now in use. */
function knownImage(
  { key, fn, namespace, name, status }: Draft,
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
    // A Function that returns to an earlier version finds the image of that version.
    ...ownRevisions(fn, caches.revisions.byIndex("function", key)).map(({ version }) => ({
      key: version.buildKey,
      image: version.image,
    })),
  ];
  // Images that were built under the former name can still be pulled by it.
  const prefixes = registry
    ? repositoriesIn(registry, namespace, name).map((each) => `${registry.pull}/${each}@`)
    : [""];
  const isHere = (image: string | undefined) =>
    prefixes.some((prefix) => image?.startsWith(prefix));
  return known.find((each) => each.key === buildKey && isHere(each.image))?.image;
}

/**
 * The stage's success. If the status shows that it was reported before, the status is left unchanged.
 */
function built(draft: Draft, key: string, image: string, deps: Deps): Outcome {
  const { status } = draft;
  const job = names.buildJob(draft.name, key);
  deps.slots.leave(draft.key);
  draft.built = { image, buildKey: key };
  const before = conditionOf(status, "BuildReady");
  if (status.build?.key === key && status.build.image === image && before?.status === "True") {
    return { kind: "done", reason: before.reason, message: before.message };
  }
  status.build = { key, image };
  return { kind: "done", reason: "JobFinished", message: `Job ${job} finished` };
}
