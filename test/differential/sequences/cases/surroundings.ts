import { type KubeObject, resources } from "@spry/kube";
import { type Sequence, type Step, step } from "../sequence.ts";
import { deployment, template } from "./workloads.ts";

const workload = (replicas: number, spec: object = {}): Step =>
  step("Deployment", (scene) =>
    scene.create(resources.deployments, deployment({ replicas, ...spec })),
  );
const ready = (count: number): Step => step(`${count} become ready`, (scene) => scene.ready(count));
const unready = (count: number): Step =>
  step(`${count} are unready`, (scene) => scene.unready(count));
const service = (spec: object, name = "web"): Step =>
  step(`Service ${name}`, (scene) =>
    scene.create(resources.services, {
      metadata: { name, labels: { of: "it" } },
      spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
    }),
  );
const budget = (spec: object): Step =>
  step("budget", (scene) =>
    scene.create(resources.podDisruptionBudgets, {
      metadata: { name: "few" },
      spec: { selector: { matchLabels: { app: "web" } }, ...spec },
    }),
  );
const evict: Step = step("evict", async (scene) => {
  const [pod] = await scene.pods(1, { ready: true });
  const { name, namespace } = pod?.metadata ?? {};
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: name ?? "", namespace: namespace ?? "" },
  };
  await scene.client
    .create<KubeObject>(resources.pods, eviction, { subresource: "eviction" })
    .catch(() => {});
});
const lingering = { template: template("a:1", {}, { annotations: { "stage/lingers": "" } }) };
const quota = (hard: object): Step =>
  step("quota", (scene) =>
    scene.create(resources.resourceQuotas, { metadata: { name: "some" }, spec: { hard } }),
  );

/** The real slices are written at most every half second. */
const quietMs = 1200;

export const surroundings: Sequence[] = [
  {
    name: "endpoints come and go",
    quietMs,
    steps: [
      service({}),
      workload(2),
      ready(1),
      ready(1),
      unready(1),
      step("scale down", (scene) =>
        scene.patch(resources.deployments, "web", { spec: { replicas: 1 } }),
      ),
    ],
  },
  {
    name: "endpoints of Pods on their way out",
    quietMs,
    steps: [
      service({}),
      workload(1, lingering),
      ready(1),
      step("scale to none", (scene) =>
        scene.patch(resources.deployments, "web", { spec: { replicas: 0 } }),
      ),
      unready(0),
      step("it ends", (scene) => scene.finish(1)),
    ],
  },
  {
    name: "endpoints that are not ready are published",
    quietMs,
    steps: [service({ publishNotReadyAddresses: true }), workload(1), ready(1), unready(1)],
  },
  {
    name: "endpoints of a headless Service",
    quietMs,
    steps: [service({ clusterIP: "None" }), workload(1), ready(1)],
  },
  {
    name: "endpoints of named ports",
    quietMs,
    steps: [
      workload(1, {
        template: {
          metadata: { labels: { app: "web" } },
          spec: {
            automountServiceAccountToken: false,
            containers: [
              { name: "main", image: "a:1", ports: [{ name: "http", containerPort: 9000 }] },
            ],
          },
        },
      }),
      service({
        ports: [
          { name: "web", port: 80, targetPort: "http" },
          { name: "more", port: 81, targetPort: "missing" },
        ],
      }),
      ready(1),
    ],
  },
  {
    name: "a Service's selector and labels change",
    quietMs,
    steps: [
      service({}),
      workload(1),
      ready(1),
      step("labels", (scene) =>
        scene.patch(resources.services, "web", { metadata: { labels: { more: "x" } } }),
      ),
      step("ports", (scene) =>
        scene.patch(resources.services, "web", {
          spec: { ports: [{ port: 80, targetPort: 9090 }] },
        }),
      ),
      step("selector", (scene) =>
        scene.patch(resources.services, "web", { spec: { selector: { app: "other" } } }),
      ),
      step("delete", (scene) => scene.delete(resources.services, "web")),
    ],
  },
  { name: "a Service without selector", quietMs, steps: [service({ selector: null })] },
  {
    name: "budget in Pods, and evictions",
    quietMs,
    steps: [workload(3), ready(3), budget({ minAvailable: 2 }), evict, ready(1), evict],
  },
  {
    name: "budget that is used up",
    quietMs,
    steps: [workload(2), ready(2), budget({ minAvailable: 1 }), evict, evict],
  },
  {
    name: "budget in percent",
    quietMs,
    steps: [workload(4), budget({ maxUnavailable: "50%" }), ready(2), ready(2), evict],
  },
  { name: "budget without Pods", quietMs, steps: [budget({ maxUnavailable: 1 })] },
  {
    name: "budget of bare Pods",
    quietMs,
    steps: [
      step("Pod", (scene) =>
        scene.create(resources.pods, {
          metadata: { name: "bare", labels: { app: "web" } },
          spec: template().spec,
        }),
      ),
      budget({ maxUnavailable: 1 }),
    ],
  },
  {
    name: "quota counts up and down",
    quietMs,
    steps: [
      quota({
        pods: "5",
        "requests.cpu": "2",
        "count/deployments.apps": "3",
        services: "2",
        configmaps: "9",
        secrets: "9",
      }),
      step("Deployment", (scene) =>
        scene.create(
          resources.deployments,
          deployment({
            replicas: 2,
            template: {
              metadata: { labels: { app: "web" } },
              spec: {
                automountServiceAccountToken: false,
                containers: [
                  { name: "main", image: "a:1", resources: { requests: { cpu: "100m" } } },
                ],
              },
            },
          }),
        ),
      ),
      service({}),
      ready(2),
      step("scale down", (scene) =>
        scene.patch(resources.deployments, "web", { spec: { replicas: 1 } }),
      ),
      step("delete", (scene) => scene.delete(resources.services, "web")),
      step("more", (scene) =>
        scene.patch(resources.resourceQuotas, "some", { spec: { hard: { pods: "6" } } }),
      ),
    ],
  },
  {
    name: "what every namespace has comes back",
    quietMs,
    steps: [
      step("delete the ServiceAccount", (scene) =>
        scene.delete(resources.serviceAccounts, "default"),
      ),
      step("delete the certificate", (scene) =>
        scene.delete(resources.configMaps, "kube-root-ca.crt"),
      ),
      step("change the certificate", (scene) =>
        scene.patch(resources.configMaps, "kube-root-ca.crt", { data: { "ca.crt": "other" } }),
      ),
    ],
  },
  {
    name: "a Pod that fits no node",
    quietMs,
    steps: [
      step("Pod", (scene) =>
        scene.create(resources.pods, {
          metadata: { name: "picky" },
          spec: { ...template().spec, nodeSelector: { disk: "none" } },
        }),
      ),
      step("gated", (scene) =>
        scene.create(resources.pods, {
          metadata: { name: "gated" },
          spec: { ...template().spec, schedulingGates: [{ name: "stage/gate" }] },
        }),
      ),
      step("open", (scene) =>
        scene.patch(resources.pods, "gated", {
          spec: { schedulingGates: [{ $patch: "delete", name: "stage/gate" }] },
        }),
      ),
    ],
  },
];
