import { type KubeClient, ManualClock, type Pod, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { eventually, podsOf } from "../../testing.ts";
import { namespace, startCluster, targetOf } from "../testing.ts";
import { indexAnnotation } from "./indexes.ts";

const target = { namespace, name: "work" };

async function startJob(client: KubeClient, spec: object): Promise<void> {
  const main = { name: "main", image: "a:1" };
  const template = {
    metadata: { labels: { app: "work" } },
    spec: { restartPolicy: "Never", containers: [main] },
  };
  await client.create(resources.jobs, { metadata: target, spec: { ...spec, template } });
}

const statusOf = async (client: KubeClient) => (await client.get(resources.jobs, target)).status;
const last = async (client: KubeClient) => (await statusOf(client))?.conditions?.at(-1);

/** The running Pod of an index; fails while there is none. */
async function podAt(client: KubeClient, index: number): Promise<Pod> {
  const pod = (await podsOf(client, "work")).find(
    ({ metadata, status }) =>
      metadata.annotations?.[indexAnnotation] === `${index}` && status?.phase === "Pending",
  );
  if (!pod) throw new Error(`no Pod of index ${index}`);
  return pod;
}

/** Ends the Pod of an index with an exit code. */
async function end(client: KubeClient, index: number, exitCode: number): Promise<void> {
  const pod = await eventually(() => podAt(client, index));
  const phase = exitCode === 0 ? "Succeeded" : "Failed";
  const containerStatuses = [{ name: "main", image: "a:1", state: { terminated: { exitCode } } }];
  const body = { status: { phase, containerStatuses } };
  await client.patch(resources.pods, targetOf(pod), body, { subresource: "status" });
}

test("each Pod knows its index, and the Job which of them are done", async () => {
  const client = await startCluster();
  await startJob(client, { completionMode: "Indexed", completions: 5, parallelism: 4 });
  const pod = await eventually(() => podAt(client, 3));
  expect(pod.metadata.name).toMatch(/^work-3-[a-z0-9]{5}$/);
  expect(pod.metadata.labels).toMatchObject({ [indexAnnotation]: "3" });
  expect(pod.spec?.hostname).toBe("work-3");
  expect(pod.spec?.containers[0]?.env).toMatchObject([
    {
      name: "JOB_COMPLETION_INDEX",
      valueFrom: { fieldRef: { fieldPath: `metadata.labels['${indexAnnotation}']` } },
    },
  ]);
  for (const index of [0, 2, 3]) await end(client, index, 0);
  await eventually(async () =>
    expect(await statusOf(client)).toMatchObject({ succeeded: 3, completedIndexes: "0,2,3" }),
  );
  for (const index of [1, 4]) await end(client, index, 0);
  await eventually(async () =>
    expect(await statusOf(client)).toMatchObject({
      succeeded: 5,
      completedIndexes: "0-4",
      conditions: [
        { type: "SuccessCriteriaMet", reason: "CompletionsReached" },
        { type: "Complete", reason: "CompletionsReached" },
      ],
    }),
  );
  expect((await statusOf(client))?.uncountedTerminatedPods).toEqual({});
});

test("with a limit per index, the others go on when one has failed for good", async () => {
  const clock = new ManualClock(Date.now());
  const client = await startCluster({ clock });
  const spec = { completionMode: "Indexed", completions: 2, parallelism: 2 };
  await startJob(client, { ...spec, backoffLimitPerIndex: 1 });
  await end(client, 0, 1);
  await eventually(async () => {
    await clock.advance(2_000);
    const pod = await podAt(client, 0);
    expect(pod.metadata.annotations).toMatchObject({
      "batch.kubernetes.io/job-index-failure-count": "1",
    });
  });
  await end(client, 0, 1);
  await eventually(async () =>
    expect(await statusOf(client)).toMatchObject({ failed: 2, failedIndexes: "0", active: 1 }),
  );
  await end(client, 1, 0);
  await eventually(async () =>
    expect(await last(client)).toMatchObject({ type: "Failed", reason: "FailedIndexes" }),
  );
  expect(await statusOf(client)).toMatchObject({ completedIndexes: "1", failedIndexes: "0" });
});

test("more failed indexes than allowed end the Job, with the Pods that still run", async () => {
  const client = await startCluster();
  const spec = { completionMode: "Indexed", completions: 3, parallelism: 3 };
  await startJob(client, { ...spec, backoffLimitPerIndex: 0, maxFailedIndexes: 0 });
  await end(client, 1, 1);
  await eventually(async () =>
    expect(await last(client)).toMatchObject({
      type: "Failed",
      reason: "MaxFailedIndexesExceeded",
      message: "Job has exceeded the specified maximal number of failed indexes",
    }),
  );
  expect(await statusOf(client)).toMatchObject({ failed: 3, failedIndexes: "1" });
});

test.each([
  { rule: { succeededIndexes: "1" }, ends: [1] },
  { rule: { succeededCount: 2 }, ends: [0, 2] },
  { rule: { succeededIndexes: "0-1", succeededCount: 1 }, ends: [0] },
])("success of $ends is enough for the rule $rule", async ({ rule, ends }) => {
  const client = await startCluster();
  const spec = { completionMode: "Indexed", completions: 3, parallelism: 3 };
  await startJob(client, { ...spec, successPolicy: { rules: [rule] } });
  for (const index of ends) await end(client, index, 0);
  await eventually(async () =>
    expect(await last(client)).toMatchObject({
      type: "Complete",
      reason: "SuccessPolicy",
      message: "Matched rules at index 0",
    }),
  );
  const status = await statusOf(client);
  expect(status).toMatchObject({ succeeded: ends.length });
  expect(status?.failed).toBeUndefined();
});

const onExit = (action: string, values: number[]) => ({
  podFailurePolicy: { rules: [{ action, onExitCodes: { operator: "In", values } }] },
});

test("a failure policy fails the whole Job, and says by which Pod and rule", async () => {
  const client = await startCluster();
  const spec = { completionMode: "Indexed", completions: 2, parallelism: 2 };
  await startJob(client, { ...spec, ...onExit("FailJob", [42]) });
  const { metadata } = await eventually(() => podAt(client, 0));
  await end(client, 0, 42);
  await eventually(async () =>
    expect(await last(client)).toMatchObject({
      type: "Failed",
      reason: "PodFailurePolicy",
      message: `Container main for pod default/${metadata.name} failed with exit code 42 matching FailJob rule at index 0`,
    }),
  );
});

test("a failure that the policy ignores is replaced, and not counted", async () => {
  const client = await startCluster();
  const spec = { completionMode: "Indexed", completions: 1, backoffLimit: 0 };
  await startJob(client, { ...spec, ...onExit("Ignore", [42]) });
  const { metadata } = await eventually(() => podAt(client, 0));
  await end(client, 0, 42);
  await eventually(async () =>
    expect((await podAt(client, 0)).metadata.uid).not.toBe(metadata.uid),
  );
  expect((await statusOf(client))?.failed).toBeUndefined();
  await end(client, 0, 0);
  await eventually(async () => expect(await last(client)).toMatchObject({ type: "Complete" }));
});

test("a Job that another controller manages is left alone", async () => {
  const client = await startCluster();
  await startJob(client, { managedBy: "example.com/queue" });
  await client.create(resources.jobs, {
    metadata: { namespace, name: "own" },
    spec: {
      managedBy: "kubernetes.io/job-controller",
      template: {
        metadata: { labels: { app: "own" } },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image: "a:1" }] },
      },
    },
  });
  await eventually(async () => expect(await podsOf(client, "own")).toHaveLength(1));
  expect(await podsOf(client, "work")).toEqual([]);
});
