import { resources } from "@spry/kube";
import { type Scene } from "../scene.ts";
import { type Sequence, type Step, step } from "../sequence.ts";
import { replicaSet, template } from "./workloads.ts";

const create = (spec: object = {}): Step =>
  step("create", (scene) => scene.create(resources.replicaSets, replicaSet(spec)));
const scale = (replicas: number): Step =>
  step(`scale to ${replicas}`, (scene) =>
    scene.patch(resources.replicaSets, "set", { spec: { replicas } }),
  );
const ready = (count: number): Step => step(`${count} become ready`, (scene) => scene.ready(count));
/** Marks Pods, so that it shows which of them are left. */
const mark = (count: number, filter: object, annotations: Record<string, string>): Step =>
  step(`mark ${JSON.stringify(annotations)}`, async (scene: Scene) => {
    for (const { metadata } of await scene.pods(count, filter))
      await scene.patch(resources.pods, metadata.name ?? "", { metadata: { annotations } });
  });
const stray = (labels: object) => ({ metadata: { name: "stray", labels }, spec: template().spec });

export const replicaSets: Sequence[] = [
  {
    name: "victims: not ready before ready",
    steps: [create(), ready(2), mark(2, { ready: true }, { mark: "ready" }), scale(2), scale(1)],
  },
  {
    name: "victims: cheap before dear",
    steps: [
      create(),
      ready(3),
      mark(1, {}, { "controller.kubernetes.io/pod-deletion-cost": "10" }),
      scale(1),
    ],
  },
  {
    name: "adopts a Pod that fits, and deletes what is then too much",
    steps: [
      create({ replicas: 1 }),
      ready(1),
      step("a stray Pod", (scene) => scene.create(resources.pods, stray({ app: "web" }))),
      scale(2),
    ],
  },
  {
    name: "adopts a Pod that was there before",
    steps: [
      step("a Pod", (scene) => scene.create(resources.pods, stray({ app: "web" }))),
      create({ replicas: 2 }),
    ],
  },
  {
    name: "releases a Pod that no longer fits",
    steps: [
      create({ replicas: 2 }),
      ready(2),
      step("relabel", async (scene) => {
        const [pod] = await scene.pods(1);
        await scene.patch(resources.pods, pod?.metadata.name ?? "", {
          metadata: { labels: { app: "other" } },
        });
      }),
    ],
  },
  {
    name: "orphaned Pods stay",
    steps: [
      create({ replicas: 2 }),
      ready(2),
      step("orphan", (scene) => scene.delete(resources.replicaSets, "set", "Orphan")),
    ],
  },
  {
    name: "Pods that may not be made",
    quietMs: 1000,
    steps: [
      step("a quota of one", async (scene) => {
        await scene.create(resources.resourceQuotas, {
          metadata: { name: "few" },
          spec: { hard: { pods: "1" } },
        });
        await scene.until("the quota to count", async () => {
          const { status } = await scene.get(resources.resourceQuotas, "few");
          return status?.used?.["pods"] !== undefined;
        });
      }),
      create({ replicas: 2 }),
    ],
  },
];
