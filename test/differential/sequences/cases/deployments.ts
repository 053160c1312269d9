import { resources } from "@spry/kube";
import { type Sequence, type Step, step } from "../sequence.ts";
import { deployment, setImage, setSpec, template } from "./workloads.ts";

const create = (spec: object = {}): Step =>
  step("create", (scene) => scene.create(resources.deployments, deployment(spec)));
const ready = (count: number, image = "a:1"): Step =>
  step(`${count} of ${image} become ready`, (scene) => scene.ready(count, { image }));
const image = (name: string): Step => step(`image ${name}`, setImage(name));
const set = (spec: object): Step => step(`set ${JSON.stringify(spec)}`, setSpec(spec));
const up = (count: number): Step[] => [create({ replicas: count }), ready(count)];
const rolling = (maxSurge: number | string, maxUnavailable: number | string) => ({
  strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } },
});

export const deployments: Sequence[] = [
  {
    name: "rollout, one Pod after the other",
    steps: [...up(3), image("a:2"), ready(1, "a:2"), ready(1, "a:2"), ready(1, "a:2")],
  },
  {
    name: "rollout without surge",
    steps: [
      create(rolling(0, 1)),
      ready(3),
      image("a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
    ],
  },
  {
    name: "rollout with surge and unavailability in percent",
    steps: [
      create({ replicas: 4, ...rolling("50%", "25%") }),
      ready(4),
      image("a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
    ],
  },
  {
    name: "rollout of everything at once",
    steps: [create(rolling("100%", "100%")), ready(3), image("a:2"), ready(3, "a:2")],
  },
  {
    name: "scaled up and down",
    steps: [
      ...up(2),
      set({ replicas: 4 }),
      ready(2),
      set({ replicas: 1 }),
      set({ replicas: 0 }),
      set({ replicas: 1 }),
    ],
  },
  {
    name: "scaled up in the middle of a rollout",
    steps: [
      create({ replicas: 10, ...rolling(3, 2) }),
      ready(10),
      image("a:2"),
      set({ replicas: 15 }),
      ready(1, "a:2"),
      ready(1, "a:2"),
      set({ replicas: 6 }),
    ],
  },
  {
    name: "recreate",
    steps: [create({ strategy: { type: "Recreate" } }), ready(3), image("a:2"), ready(3, "a:2")],
  },
  {
    name: "recreate waits for the last old Pod",
    steps: [
      create({
        strategy: { type: "Recreate" },
        template: template("a:1", {}, { annotations: { "stage/lingers": "" } }),
      }),
      ready(3),
      image("a:2"),
      step("two are gone", (scene) => scene.finish(2)),
      step("the last is gone", (scene) => scene.finish(1)),
      ready(3, "a:2"),
    ],
  },
  {
    name: "paused, changed, resumed",
    steps: [
      ...up(2),
      set({ paused: true }),
      image("a:2"),
      set({ replicas: 3 }),
      ready(1),
      set({ paused: false }),
      ready(1, "a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
    ],
  },
  {
    name: "created paused",
    steps: [create({ paused: true }), set({ paused: false }), ready(3)],
  },
  {
    name: "undo finds the former ReplicaSet",
    steps: [
      ...up(2),
      image("a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
      image("a:1"),
      ready(1),
      ready(1),
    ],
  },
  {
    name: "undo before a rollout is over",
    steps: [...up(2), image("a:bad"), image("a:1")],
  },
  {
    name: "restart",
    steps: [
      ...up(2),
      set({
        template: {
          metadata: {
            annotations: { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" },
          },
        },
      }),
      ready(1),
      ready(1),
    ],
  },
  {
    name: "stuck on a bad image, then fixed",
    steps: [
      create({ replicas: 2, progressDeadlineSeconds: 4 }),
      ready(2),
      image("a:bad"),
      step("the deadline passes", (scene) =>
        scene.until("ProgressDeadlineExceeded", async () => {
          const { status } = await scene.get(resources.deployments, "web");
          return (
            status?.conditions?.some(({ reason }) => reason === "ProgressDeadlineExceeded") ?? false
          );
        }),
      ),
      step("the image is fixed", async (scene) => {
        await setSpec({ progressDeadlineSeconds: 600 })(scene);
        await setImage("a:3")(scene);
      }),
      ready(1, "a:3"),
      ready(1, "a:3"),
    ],
  },
  {
    name: "history of two",
    steps: [
      create({ replicas: 1, revisionHistoryLimit: 2 }),
      ready(1),
      ...["a:2", "a:3", "a:4", "a:5"].flatMap((name) => [image(name), ready(1, name)]),
    ],
  },
  {
    name: "no history",
    steps: [
      create({ replicas: 1, revisionHistoryLimit: 0 }),
      ready(1),
      image("a:2"),
      ready(1, "a:2"),
    ],
  },
  {
    name: "available after minReadySeconds",
    quietMs: 3500,
    steps: [
      create({ replicas: 2, minReadySeconds: 3 }),
      ready(2),
      image("a:2"),
      ready(1, "a:2"),
      ready(1, "a:2"),
    ],
  },
  {
    name: "Pods that are ready no more",
    steps: [
      ...up(2),
      step("one is unready", (scene) => scene.unready(1)),
      step("another", (scene) => scene.unready(1)),
      step("ready again", (scene) => scene.ready(2, { phase: "Running" })),
    ],
  },
  {
    name: "Pods that are deleted, and that fail",
    steps: [
      ...up(2),
      step("one is deleted", async (scene) => {
        const [pod] = await scene.pods(1, { ready: true });
        await scene.delete(resources.pods, pod?.metadata.name ?? "");
      }),
      ready(1),
      step("one fails", (scene) => scene.fail(1, { phase: "Running" })),
      ready(1),
    ],
  },
  {
    name: "annotations and labels are handed down",
    steps: [
      step("create", (scene) => {
        const { metadata, spec } = deployment({ replicas: 1 });
        return scene.create(resources.deployments, {
          metadata: { ...metadata, labels: { of: "it" }, annotations: { note: "one" } },
          spec,
        });
      }),
      ready(1),
      step("annotate", (scene) =>
        scene.patch(resources.deployments, "web", {
          metadata: { annotations: { note: "two", more: "x" } },
        }),
      ),
      set({ minReadySeconds: 1 }),
    ],
  },
  {
    name: "adopts ReplicaSets that fit, and releases those that do not",
    steps: [
      ...up(1),
      step("its ReplicaSet changes its label", async (scene) => {
        const { items } = await scene.client.list(resources.replicaSets, {
          namespace: scene.namespace,
        });
        await scene.patch(resources.replicaSets, items[0]?.metadata.name ?? "", {
          metadata: { labels: { app: "other" } },
        });
      }),
    ],
  },
  {
    name: "orphaned, and adopted by its successor",
    // Whether its status is written once more between the release of its ReplicaSet and its end.
    chance: /^history of Deployment\/web Available/,
    steps: [
      ...up(2),
      step("orphan", async (scene) => {
        await scene.delete(resources.deployments, "web", "Orphan");
        await scene.untilGone(resources.deployments, "web");
      }),
      create({ replicas: 2 }),
    ],
  },
];
