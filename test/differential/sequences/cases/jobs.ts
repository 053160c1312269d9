import { resources } from "@spry/kube";
import { type Sequence, step } from "../sequence.ts";
import { create, fail, quietMs, ready, set, succeed } from "./job-steps.ts";
import { job } from "./workloads.ts";

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
