import { type HorizontalPodAutoscaler, messageOf, resources } from "@spry/kube";
import { usageAnnotation } from "../metrics-server.ts";
import { type Scene } from "../scene.ts";
import { type Sequence, type Step, step } from "../sequence.ts";
import { deployment } from "./workloads.ts";

/** The real controller looks every 15 seconds. */
const passMs = 90_000;
const quietMs = 1500;

const using = (cpu: string, memory = "64Mi", sidecar = "0") => ({
  [usageAnnotation]: JSON.stringify({
    main: { cpu, memory },
    side: { cpu: sidecar, memory: "1Mi" },
  }),
});
/** Two containers that request 100m and 100Mi each; of the first cpu and memory, of the other cpu is given. */
const workload = (
  replicas: number,
  annotations: object,
  requests: object = { cpu: "100m", memory: "100Mi" },
  readyCount = replicas,
): Step =>
  step(`${replicas} Pods`, async (scene) => {
    const container = (name: string) => ({ name, image: "a:1", resources: { requests } });
    const template = {
      metadata: { labels: { app: "web" }, annotations },
      spec: {
        automountServiceAccountToken: false,
        containers: [container("main"), container("side")],
      },
    };
    await scene.create(resources.deployments, deployment({ replicas, template }));
    await scene.ready(readyCount);
  });
const ready = (count: number): Step => step(`${count} become ready`, (scene) => scene.ready(count));
const use = (annotations: object): Step =>
  step(`use ${JSON.stringify(annotations)}`, async (scene) => {
    const { items } = await scene.client.list(resources.pods, { namespace: scene.namespace });
    for (const { metadata } of items)
      await scene.patch(resources.pods, metadata.name ?? "", { metadata: { annotations } });
  });

type Status = NonNullable<HorizontalPodAutoscaler["status"]>;
const until = (what: string, holds: (status: Status) => boolean): Step =>
  step(
    what,
    async (scene) => {
      let last: Status | undefined;
      const look = async () => {
        last = (await scene.get(resources.horizontalPodAutoscalers, "web")).status;
        return last !== undefined && holds(last);
      };
      await scene.until(what, look, passMs).catch((cause: unknown) => {
        throw new Error(`${messageOf(cause)}, but ${JSON.stringify(last)}`, { cause });
      });
    },
    passMs,
  );
const desires = (replicas: number): Step =>
  until(`${replicas} are desired`, ({ desiredReplicas }) => desiredReplicas === replicas);
const says = (reason: string): Step =>
  until(reason, ({ conditions = [] }) => conditions.some((each) => each.reason === reason));
const create = (spec: object, name = "web"): Step =>
  step(
    "autoscaler",
    (scene: Scene) =>
      scene.create(resources.horizontalPodAutoscalers, {
        metadata: { name: "web" },
        spec: {
          maxReplicas: 5,
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
          ...spec,
        },
      }),
    // Of two passes the real one makes the first after the other has made both.
    passMs,
  );
const resource = (name: string, target: object) => ({
  type: "Resource",
  resource: { name, target },
});
const percent = (averageUtilization: number) => ({ type: "Utilization", averageUtilization });
const cpu = (percentage: number) => resource("cpu", percent(percentage));

export const autoscalers: Sequence[] = [
  {
    name: "autoscaler by CPU, up to its most, held on the way down",
    quietMs,
    steps: [
      workload(2, using("160m")),
      create({ metrics: [cpu(50)] }),
      desires(4),
      ready(2),
      desires(5),
      ready(1),
      says("TooManyReplicas"),
      use(using("10m")),
      says("ScaleDownStabilized"),
    ],
  },
  {
    name: "autoscaler that shrinks by its policy",
    quietMs,
    steps: [
      workload(4, using("10m")),
      create({
        minReplicas: 2,
        metrics: [cpu(50)],
        behavior: {
          scaleDown: {
            stabilizationWindowSeconds: 0,
            policies: [{ type: "Pods", value: 1, periodSeconds: 20 }],
          },
        },
      }),
      // Both look at moments of their own: by when one is there, the other may have gone on.
      until("3 or fewer are desired", ({ desiredReplicas }) => desiredReplicas <= 3),
      desires(2),
      says("TooFewReplicas"),
    ],
  },
  {
    name: "autoscaler that grows by its policy",
    quietMs,
    steps: [
      workload(1, using("190m")),
      create({
        metrics: [cpu(25)],
        behavior: { scaleUp: { policies: [{ type: "Pods", value: 1, periodSeconds: 60 }] } },
      }),
      desires(2),
      says("ScaleUpLimit"),
    ],
  },
  {
    name: "autoscaler within its tolerance",
    quietMs,
    steps: [workload(2, using("106m")), create({ metrics: [cpu(50)] }), says("ReadyForNewScale")],
  },
  {
    name: "autoscaler by memory in bytes",
    quietMs,
    steps: [
      workload(1, using("10m", "100Mi")),
      create({ metrics: [resource("memory", { type: "AverageValue", averageValue: "60Mi" })] }),
      desires(2),
    ],
  },
  {
    name: "autoscaler by memory in percent",
    quietMs,
    steps: [
      workload(1, using("10m", "199Mi")),
      create({ metrics: [resource("memory", percent(40))] }),
      desires(3),
    ],
  },
  {
    name: "autoscaler by one container",
    quietMs,
    steps: [
      workload(1, using("10m", "64Mi", "90m")),
      create({
        metrics: [
          {
            type: "ContainerResource",
            containerResource: { name: "cpu", container: "side", target: percent(50) },
          },
        ],
      }),
      desires(2),
    ],
  },
  {
    name: "autoscaler by the metric that asks for most",
    quietMs,
    steps: [
      workload(1, using("10m", "150Mi")),
      create({
        metrics: [cpu(50), resource("memory", { type: "AverageValue", averageValue: "50Mi" })],
      }),
      desires(4),
    ],
  },
  {
    name: "autoscaler one of whose metrics is not there",
    quietMs,
    steps: [
      workload(1, using("190m")),
      create({
        metrics: [
          cpu(50),
          {
            type: "Pods",
            pods: {
              metric: { name: "calls" },
              target: { type: "AverageValue", averageValue: "10" },
            },
          },
        ],
      }),
      desires(2),
    ],
  },
  ...[
    {
      type: "Pods",
      pods: { metric: { name: "calls" }, target: { type: "AverageValue", averageValue: "10" } },
    },
    {
      type: "External",
      external: { metric: { name: "queue" }, target: { type: "Value", value: "10" } },
    },
    {
      type: "Object",
      object: {
        metric: { name: "hits" },
        describedObject: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        target: { type: "Value", value: "10" },
      },
    },
  ].map((metric) => ({
    name: `autoscaler by ${metric.type} metrics that are not served`,
    quietMs,
    steps: [
      workload(1, using("10m")),
      create({ metrics: [metric] }),
      says(`FailedGet${metric.type}Metric`),
    ],
  })),
  {
    name: "autoscaler of Pods without requests",
    quietMs,
    steps: [
      workload(1, using("10m"), {}),
      create({ metrics: [cpu(50)] }),
      says("FailedGetResourceMetric"),
    ],
  },
  {
    name: "autoscaler without metrics",
    quietMs,
    steps: [workload(1, {}), create({ metrics: [cpu(50)] }), says("FailedGetResourceMetric")],
  },
  {
    name: "autoscaler and Pods that are not ready",
    quietMs,
    steps: [
      workload(2, using("90m"), undefined, 1),
      create({ metrics: [cpu(30)] }),
      says("ValidMetricFound"),
    ],
  },
  {
    name: "autoscaler of nothing",
    quietMs,
    steps: [create({ metrics: [cpu(50)] }, "missing"), says("FailedGetScale")],
  },
  {
    name: "autoscaler of what is at zero",
    quietMs,
    steps: [workload(0, {}), create({ metrics: [cpu(50)] }), says("ScalingDisabled")],
  },
  {
    name: "autoscaler below its least",
    quietMs,
    steps: [workload(1, using("10m")), create({ minReplicas: 3, metrics: [cpu(50)] }), desires(3)],
  },
  {
    name: "autoscaler above its most",
    quietMs,
    steps: [workload(3, using("10m")), create({ maxReplicas: 2, metrics: [cpu(50)] }), desires(2)],
  },
];
