import { resources } from "@spry/kube";
import { type Sequence, type Step, step } from "../sequence.ts";
import { job } from "./workloads.ts";

/** Longer than the second for which the real controller gathers changes of Pods. */
const quietMs = 1800;

const create = (spec: object = {}, pod: object = {}): Step =>
  step("create", (scene) => scene.create(resources.jobs, job(spec, pod)));
const set = (spec: object): Step =>
  step(`set ${JSON.stringify(spec)}`, (scene) => scene.patch(resources.jobs, "work", { spec }));
const ready = (count: number): Step => step(`${count} run`, (scene) => scene.ready(count));
const succeed = (count: number, filter: object = {}): Step =>
  step(`${count} succeed ${JSON.stringify(filter)}`, (scene) => scene.succeed(count, filter));
const fail = (count: number, filter: object = {}, exitCode = 1, conditions: object[] = []): Step =>
  step(`${count} fail ${JSON.stringify(filter)}`, (scene) =>
    scene.fail(count, filter, exitCode, conditions),
  );
const disrupted = {
  type: "DisruptionTarget",
  status: "True",
  reason: "DeletionByTaintManager",
  message: "taint",
};

export const jobs: Sequence[] = [
  {
    name: "Job of one Pod",
    quietMs,
    steps: [create(), ready(1), succeed(1, { phase: "Running" })],
  },
  {
    name: "Job of five completions, two at a time",
    quietMs,
    steps: [create({ completions: 5, parallelism: 2 }), succeed(1), succeed(2), succeed(2)],
  },
  {
    name: "work queue",
    quietMs,
    steps: [
      create({ parallelism: 3 }),
      ready(3),
      succeed(1, { phase: "Running" }),
      succeed(2, { phase: "Running" }),
    ],
  },
  {
    name: "failing Job without another try",
    quietMs,
    steps: [create({ backoffLimit: 0 }), ready(1), fail(1, { phase: "Running" })],
  },
  {
    name: "failing Job with another try",
    quietMs,
    steps: [create({ backoffLimit: 1 }), fail(1), fail(1)],
  },
  {
    name: "failing Job whose other Pods run",
    quietMs,
    steps: [
      create({ backoffLimit: 0, completions: 3, parallelism: 3 }),
      ready(3),
      fail(1, { phase: "Running" }),
    ],
  },
  {
    name: "active deadline",
    quietMs,
    steps: [
      create({ activeDeadlineSeconds: 3, completions: 2, parallelism: 2 }),
      step("the deadline passes", (scene) =>
        scene.until("DeadlineExceeded", async () => {
          const { status } = await scene.get(resources.jobs, "work");
          return status?.conditions?.some(({ type }) => type === "Failed") ?? false;
        }),
      ),
    ],
  },
  {
    name: "podFailurePolicy fails the Job",
    quietMs,
    steps: [
      create({
        backoffLimit: 6,
        parallelism: 2,
        completions: 2,
        podFailurePolicy: {
          rules: [
            {
              action: "FailJob",
              onExitCodes: { containerName: "main", operator: "In", values: [42] },
            },
          ],
        },
      }),
      fail(1, {}, 42),
    ],
  },
  {
    name: "podFailurePolicy ignores disruptions",
    quietMs,
    steps: [
      create({
        backoffLimit: 0,
        podFailurePolicy: {
          rules: [
            { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          ],
        },
      }),
      fail(1, {}, 137, [disrupted]),
      succeed(1),
    ],
  },
  {
    name: "podFailurePolicy by condition and count",
    quietMs,
    steps: [
      create({
        backoffLimit: 0,
        podFailurePolicy: {
          rules: [
            { action: "Count", onExitCodes: { operator: "In", values: [1] } },
            { action: "FailJob", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          ],
        },
      }),
      fail(1, {}, 137, [disrupted]),
    ],
  },
  {
    name: "Indexed Job",
    quietMs,
    steps: [
      create({ completionMode: "Indexed", completions: 4, parallelism: 3 }),
      succeed(1, { index: 2 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 1 }),
      succeed(1, { index: 3 }),
    ],
  },
  {
    name: "Indexed Job with tries per index",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        backoffLimitPerIndex: 0,
      }),
      fail(1, { index: 1 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 2 }),
    ],
  },
  {
    name: "Indexed Job with too many failed indexes",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 4,
        parallelism: 4,
        backoffLimitPerIndex: 0,
        maxFailedIndexes: 1,
      }),
      fail(1, { index: 3 }),
      fail(1, { index: 1 }),
    ],
  },
  {
    name: "another try of an index",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 2,
        parallelism: 2,
        backoffLimitPerIndex: 1,
      }),
      fail(1, { index: 0 }),
      succeed(1, { index: 0 }),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "FailIndex",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 2,
        parallelism: 2,
        backoffLimitPerIndex: 3,
        podFailurePolicy: {
          rules: [{ action: "FailIndex", onExitCodes: { operator: "In", values: [7] } }],
        },
      }),
      fail(1, { index: 0 }, 7),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "successPolicy of the leader",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        successPolicy: { rules: [{ succeededIndexes: "0" }] },
      }),
      ready(3),
      succeed(1, { index: 0, phase: "Running" }),
    ],
  },
  {
    name: "successPolicy by count",
    quietMs,
    steps: [
      create({
        completionMode: "Indexed",
        completions: 3,
        parallelism: 3,
        successPolicy: { rules: [{ succeededCount: 2 }] },
      }),
      succeed(1, { index: 2 }),
      succeed(1, { index: 1 }),
    ],
  },
  {
    name: "suspended and resumed",
    quietMs,
    steps: [
      create({ completions: 2, parallelism: 2 }),
      ready(2),
      set({ suspend: true }),
      set({ suspend: false }),
      succeed(2),
    ],
  },
  {
    name: "created suspended",
    quietMs,
    steps: [create({ suspend: true }), set({ suspend: false }), succeed(1)],
  },
  {
    name: "parallelism changes",
    quietMs,
    steps: [
      create({ completions: 4, parallelism: 1 }),
      set({ parallelism: 3 }),
      set({ parallelism: 0 }),
      set({ parallelism: 4 }),
      succeed(4),
    ],
  },
  {
    name: "elastic Indexed Job",
    quietMs,
    steps: [
      create({ completionMode: "Indexed", completions: 2, parallelism: 2 }),
      set({ completions: 3, parallelism: 3 }),
      succeed(3),
    ],
  },
  {
    name: "time to live",
    quietMs,
    steps: [
      create({ ttlSecondsAfterFinished: 3 }),
      succeed(1),
      step("it is over", (scene) => scene.untilGone(resources.jobs, "work")),
    ],
  },
  {
    name: "a Job's Pod is deleted",
    quietMs,
    steps: [
      create(),
      ready(1),
      step("delete", async (scene) => {
        const [pod] = await scene.pods(1);
        await scene.delete(resources.pods, pod?.metadata.name ?? "");
      }),
    ],
  },
  {
    name: "a Job's Pods are replaced only when they have failed",
    quietMs,
    steps: [
      step("create", (scene) => {
        const { metadata, spec } = job({ podReplacementPolicy: "Failed" });
        const annotated = { ...spec.template, metadata: { annotations: { "stage/lingers": "" } } };
        return scene.create(resources.jobs, { metadata, spec: { ...spec, template: annotated } });
      }),
      ready(1),
      step("delete", async (scene) => {
        const [pod] = await scene.pods(1);
        await scene.delete(resources.pods, pod?.metadata.name ?? "");
      }),
      step("it ends", (scene) => scene.finish(1)),
    ],
  },
  {
    name: "a Job is deleted",
    quietMs,
    steps: [
      create({ parallelism: 2 }),
      ready(2),
      step("delete", (scene) => scene.delete(resources.jobs, "work")),
    ],
  },
  {
    name: "a Job is orphaned",
    quietMs,
    steps: [
      create(),
      ready(1),
      step("orphan", (scene) => scene.delete(resources.jobs, "work", "Orphan")),
    ],
  },
];
