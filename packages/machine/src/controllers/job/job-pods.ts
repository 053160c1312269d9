import {
  type Container,
  isNamespaceTerminating,
  isNotFound,
  type Job,
  messageOf,
  type Pod,
  resources,
} from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { type Expectations } from "../expectations.ts";
import { inGrowingBatches } from "../growing-batches.ts";
import { podFromTemplate } from "../pod-template.ts";
import { podsToDelete } from "../scale-down.ts";
import {
  earlierFailures,
  failureCountAnnotation,
  firstFree,
  ignoredFailureCountAnnotation,
  indexAnnotation,
  indexOf,
  isIndexed,
  unionOf,
  withIndexes,
} from "./indexes.ts";
import { hasFinalizer, type JobCounts, trackingFinalizer, wantedActive } from "./job-outcome.ts";
import { msUntilIndexRetry } from "./job-pace.ts";
import { failureVerdict, replacesOnlyFailed } from "./policies.ts";

const maxBurst = 500;
const indexVariable = "JOB_COMPLETION_INDEX";
/** A generated name has five characters more (`apiserver/pkg/storage/names`). */
const maxBaseLength = 58;

/**
 * Brings the running Pods to the number wanted. `created` is negative for Pods deleted; `retryMs` is
 * the time until more are due.
 */
export async function managePods(
  context: ControllerContext,
  expectations: Expectations,
  job: Job,
  counts: JobCounts,
  retryMs: number,
): Promise<{ created: number; retryMs: number }> {
  const { client, events, clock } = context;
  const owner = job.metadata.uid ?? "";
  const wanted = wantedActive(job, counts);
  const excess = excessPods(job, counts, wanted, clock.now());
  if (excess.length > 0) {
    await deletePods(context, job, excess);
    for (const pod of excess) expectations.expect(owner, pod.metadata.uid ?? "", "gone");
    return { created: -excess.length, retryMs };
  }
  // With `podReplacementPolicy: Failed`, what is on its way out has not failed yet.
  const held = replacesOnlyFailed(job) ? counts.terminating.length : 0;
  const room = Math.min(wanted - counts.active.length - held, maxBurst);
  if (room <= 0 || retryMs > 0) return { created: 0, retryMs };
  const { desired, waitMs } = desiredPods(job, counts, room, clock);
  const create = async (pod: Pod) => {
    const created = await client.create(resources.pods, pod);
    expectations.expect(owner, created.metadata.uid ?? "", "seen");
    const message = `Created pod: ${created.metadata.name}`;
    events.record(resources.jobs, job, { type: "Normal", reason: "SuccessfulCreate", message });
  };
  const { failure } = await inGrowingBatches(desired, create);
  if (!failure) return { created: desired.length, retryMs: waitMs };
  if (isNamespaceTerminating(failure)) return { created: 0, retryMs: 0 };
  const message = `Error creating: ${messageOf(failure)}`;
  events.record(resources.jobs, job, { type: "Warning", reason: "FailedCreate", message });
  throw failure;
}

/** Pods over the number wanted; of an Indexed Job first those with an index that is taken, or none. */
function excessPods(job: Job, counts: JobCounts, wanted: number, now: number): Pod[] {
  const { active } = counts;
  const surplus: Pod[] = [];
  if (isIndexed(job)) {
    const byIndex = new Map<number, Pod[]>();
    for (const pod of active) {
      const index = indexOf(pod, job);
      if (index === undefined) surplus.push(pod);
      else byIndex.set(index, [...(byIndex.get(index) ?? []), pod]);
    }
    for (const same of byIndex.values()) surplus.push(...podsToDelete(same, same.length - 1, now));
  }
  const left = active.filter((pod) => !surplus.includes(pod));
  return [...surplus, ...podsToDelete(left, Math.max(0, left.length - wanted), now)];
}

/** The Pods to create now; `waitMs` until more of them are due, 0 when there are none. */
function desiredPods(
  job: Job,
  { indexes, active, terminating }: JobCounts,
  count: number,
  clock: ControllerContext["clock"],
): { desired: Pod[]; waitMs: number } {
  if (!indexes) return { desired: Array.from({ length: count }, () => desiredPod(job)), waitMs: 0 };
  const of = (pods: readonly Pod[]) => pods.flatMap((pod) => indexOf(pod, job) ?? []);
  const held = replacesOnlyFailed(job) ? of(terminating) : [];
  const taken = withIndexes(unionOf(indexes.succeeded, indexes.failed ?? []), [
    ...of(active),
    ...held,
  ]);
  const free = firstFree(taken, count, job.spec?.completions ?? 0).map((index) => {
    const latest = indexes.waiting.get(index);
    return { index, latest, ms: msUntilIndexRetry(latest, clock) };
  });
  const waits = free.map(({ ms }) => ms).filter((ms) => ms > 0);
  return {
    desired: free
      .filter(({ ms }) => ms === 0)
      .map(({ index, latest }) => indexedPod(job, index, latest)),
    waitMs: waits.length > 0 ? Math.min(...waits) : 0,
  };
}

/** Knows its index by annotation, label, host name and `JOB_COMPLETION_INDEX`. */
function indexedPod(job: Job, index: number, latest: Pod | undefined): Pod {
  const pod = desiredPod(job);
  const infix = `-${index}-`;
  const base = (job.metadata.name ?? "").slice(0, maxBaseLength - infix.length);
  const { metadata } = pod;
  metadata.generateName = `${base}${infix}`;
  metadata.labels = { ...metadata.labels, [indexAnnotation]: `${index}` };
  metadata.annotations = { ...metadata.annotations, [indexAnnotation]: `${index}` };
  if (job.spec?.backoffLimitPerIndex !== undefined) {
    const ignored = latest && failureVerdict(job, latest).action === "Ignore" ? 1 : 0;
    const counted = latest ? earlierFailures(latest) + 1 - ignored : 0;
    const skipped = latest ? earlierFailures(latest, true) - earlierFailures(latest) + ignored : 0;
    metadata.annotations[failureCountAnnotation] = `${counted}`;
    if (skipped > 0) metadata.annotations[ignoredFailureCountAnnotation] = `${skipped}`;
  }
  const fieldPath = `metadata.labels['${indexAnnotation}']`;
  const withIndex = (container: Container): Container => {
    const { env = [] } = container;
    if (env.some(({ name }) => name === indexVariable)) return container;
    return {
      ...container,
      env: [...env, { name: indexVariable, valueFrom: { fieldRef: { fieldPath } } }],
    };
  };
  if (pod.spec)
    pod.spec = {
      ...pod.spec,
      hostname: `${job.metadata.name}-${index}`,
      containers: pod.spec.containers.map(withIndex),
      ...(pod.spec.initContainers
        ? { initContainers: pod.spec.initContainers.map(withIndex) }
        : {}),
    };
  return pod;
}

function desiredPod(job: Job): Pod {
  const pod = podFromTemplate(job.spec?.template, resources.jobs, job);
  pod.metadata.finalizers = [...(pod.metadata.finalizers ?? []), trackingFinalizer];
  return pod;
}

/** Ended by the controller itself, these Pods are neither successes nor failures: nothing to count. */
export async function deletePods(
  context: ControllerContext,
  job: Job,
  pods: readonly Pod[],
): Promise<void> {
  const { client, events } = context;
  await release(context, pods);
  await Promise.all(
    pods.map(async (pod) => {
      const preconditions = { uid: pod.metadata.uid ?? "" };
      await client.delete(resources.pods, target(pod), { preconditions }).catch(ignoreNotFound);
      const message = `Deleted pod: ${pod.metadata.name}`;
      events.record(resources.jobs, job, { type: "Normal", reason: "SuccessfulDelete", message });
    }),
  );
}

/** Takes the finalizer off, so that the Pods can go. */
export async function release({ client }: ControllerContext, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    if (!hasFinalizer(pod)) continue;
    const finalizers = pod.metadata.finalizers?.filter((name) => name !== trackingFinalizer) ?? [];
    const { uid, resourceVersion } = pod.metadata;
    await client
      .patch(resources.pods, target(pod), { metadata: { uid, resourceVersion, finalizers } })
      .catch(ignoreNotFound);
  }
}

export function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

export function target({ metadata }: Pod | Job) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
