import { at, type Case, get, patch, post, put, remove, type Step } from "../../step.ts";

const quotasAt = at("v1", "resourcequotas");
const pods = at("v1", "pods");
const configs = at("v1", "configmaps");
const services = at("v1", "services");

/** There are no controllers: what they would write is written by the case. */
function quota(
  spec: Record<string, unknown>,
  used?: Record<string, string>,
  name = "quota",
): Step[] {
  const hard = (spec.hard ?? {}) as Record<string, string>;
  const zero = Object.fromEntries(Object.keys(hard).map((each) => [each, "0"]));
  return [
    post(quotasAt, { metadata: { name }, spec }),
    patch("merge", `${quotasAt}/${name}/status`, { status: { hard, used: used ?? zero } }),
  ];
}

const pod = (name: string, resources?: object, more: object = {}) =>
  post(pods, {
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      containers: [{ name: "a", image: "i", ...(resources && { resources }) }],
      ...more,
    },
  });
const config = (name: string) => post(configs, { metadata: { name } });
const service = (name: string, type: string, ports = 1) =>
  post(services, {
    metadata: { name },
    spec: {
      type,
      ports: Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: 80 + index })),
    },
  });
const shown = get(`${quotasAt}/quota`);
const cpu = (amount: string) => ({ requests: { cpu: amount }, limits: { cpu: amount } });

const enforced: [string, Step[], Step[]][] = [
  ["pods", quota({ hard: { pods: "1" } }), [pod("a"), pod("b")]],
  ["count/pods", quota({ hard: { "count/pods": "1" } }), [pod("a"), pod("b")]],
  ["cpu not given", quota({ hard: { cpu: "1", "limits.memory": "1Gi" } }), [pod("a")]],
  [
    "cpu",
    quota({ hard: { "requests.cpu": "1" } }),
    [pod("a", cpu("600m")), pod("b", cpu("600m")), pod("c", cpu("400m"))],
  ],
  [
    "cpu and memory",
    quota({ hard: { cpu: "1", memory: "1Gi", "limits.cpu": "1" } }),
    [
      pod("a", { requests: { cpu: "2", memory: "2Gi" }, limits: { cpu: "2", memory: "2Gi" } }),
      pod("b", { requests: { cpu: "500m", memory: "512Mi" }, limits: { cpu: "1", memory: "1Gi" } }),
    ],
  ],
  [
    "configmaps",
    quota({ hard: { configmaps: "1", "count/configmaps": "5" } }),
    [config("a"), config("b")],
  ],
  [
    "count/deployments.apps",
    quota({ hard: { "count/deployments.apps": "0" } }),
    [
      post(at("apps/v1", "deployments"), {
        metadata: { name: "a" },
        spec: {
          selector: { matchLabels: { a: "b" } },
          template: {
            metadata: { labels: { a: "b" } },
            spec: { containers: [{ name: "a", image: "i" }] },
          },
        },
      }),
    ],
  ],
  [
    "services",
    quota({ hard: { services: "2", "services.nodeports": "0", "services.loadbalancers": "0" } }),
    [
      service("a", "NodePort", 2),
      service("b", "NodePort"),
      service("c", "LoadBalancer"),
      service("d", "ClusterIP"),
      service("e", "ClusterIP"),
    ],
  ],
  [
    "services change their type",
    quota({ hard: { "services.nodeports": "0" } }),
    [service("a", "ClusterIP"), patch("merge", `${services}/a`, { spec: { type: "NodePort" } })],
  ],
  [
    "PersistentVolumeClaim",
    quota({
      hard: {
        "requests.storage": "1Gi",
        persistentvolumeclaims: "5",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
      },
    }),
    [
      post(at("v1", "persistentvolumeclaims"), {
        metadata: { name: "a" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "gold",
          resources: { requests: { storage: "600Mi" } },
        },
      }),
      post(at("v1", "persistentvolumeclaims"), {
        metadata: { name: "b" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "gold",
          resources: { requests: { storage: "600Mi" } },
        },
      }),
    ],
  ],
  [
    "status unknown",
    [
      post(quotasAt, { metadata: { name: "quota" }, spec: { hard: { pods: "1" } } }),
      patch("merge", `${quotasAt}/quota/status`, {
        status: { hard: { pods: "1", configmaps: "1" } },
      }),
    ],
    [pod("a")],
  ],
  [
    "no status",
    [post(quotasAt, { metadata: { name: "quota" }, spec: { hard: { pods: "0" } } })],
    [pod("a")],
  ],
  [
    "two quotas",
    [...quota({ hard: { pods: "2" } }), ...quota({ hard: { pods: "1" } }, undefined, "second")],
    [pod("a"), pod("b")],
  ],
  [
    "dry run",
    quota({ hard: { configmaps: "1" } }),
    [post(`${configs}?dryRun=All`, { metadata: { name: "a" } }), config("b")],
  ],
  [
    "BestEffort",
    quota({ hard: { pods: "0" }, scopes: ["BestEffort"] }),
    [pod("a"), pod("b", cpu("1"))],
  ],
  [
    "NotBestEffort",
    quota({ hard: { pods: "0" }, scopes: ["NotBestEffort"] }),
    [pod("a"), pod("b", cpu("1"))],
  ],
  [
    "Terminating",
    quota({ hard: { pods: "0" }, scopes: ["Terminating"] }),
    [pod("a"), pod("b", undefined, { activeDeadlineSeconds: 5 })],
  ],
  [
    "NotTerminating",
    quota({ hard: { pods: "0" }, scopes: ["NotTerminating"] }),
    [pod("a", undefined, { activeDeadlineSeconds: 5 }), pod("b")],
  ],
  [
    "PriorityClass",
    quota({
      hard: { pods: "0" },
      scopeSelector: {
        matchExpressions: [
          { scopeName: "PriorityClass", operator: "In", values: ["system-node-critical"] },
        ],
      },
    }),
    [pod("a"), pod("b", undefined, { priorityClassName: "system-node-critical" })],
  ],
  ["used above hard", quota({ hard: { pods: "1" } }, { pods: "3" }), [pod("a")]],
  [
    "sidecars",
    quota({ hard: { "requests.cpu": "1" } }),
    [
      pod("a", cpu("600m"), {
        initContainers: [
          { name: "s", image: "i", restartPolicy: "Always", resources: cpu("600m") },
        ],
      }),
    ],
  ],
];

const written: [string, Record<string, unknown>][] = [
  ["unknown resource", { hard: { nonsense: "1" } }],
  ["bad name", { hard: { "a b": "1" } }],
  ["negative", { hard: { pods: "-1" } }],
  ["fraction", { hard: { pods: "1.5" } }],
  ["scope", { hard: { pods: "1" }, scopes: ["X"] }],
  ["scope of another resource", { hard: { configmaps: "1" }, scopes: ["Terminating"] }],
  ["conflicting scopes", { hard: { pods: "1" }, scopes: ["Terminating", "NotTerminating"] }],
  [
    "selector scope",
    {
      hard: { pods: "1" },
      scopeSelector: { matchExpressions: [{ scopeName: "X", operator: "Exists" }] },
    },
  ],
  [
    "selector operator",
    {
      hard: { pods: "1" },
      scopeSelector: {
        matchExpressions: [{ scopeName: "Terminating", operator: "In", values: ["a"] }],
      },
    },
  ],
  [
    "selector without values",
    {
      hard: { pods: "1" },
      scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In" }] },
    },
  ],
  [
    "selector with values",
    {
      hard: { pods: "1" },
      scopeSelector: {
        matchExpressions: [{ scopeName: "PriorityClass", operator: "Exists", values: ["a"] }],
      },
    },
  ],
];

export const quotas: Case[] = [
  ...enforced.map(([name, before, requests]): Case => ({
    name: `quota of ${name}`,
    // A real server looks at its copy of the quotas, which is a moment old.
    steps: [...before, { ...get(`${quotasAt}/quota/status`), settleMs: 300 }, ...requests, shown],
  })),
  ...written.map(([name, spec]): Case => ({
    name: `resource quota: ${name}`,
    steps: [post(quotasAt, { metadata: { name: "quota" }, spec })],
  })),
  {
    name: "resource quota: scopes change",
    steps: [
      post(quotasAt, { metadata: { name: "quota" }, spec: { hard: { pods: "1" } } }),
      put(`${quotasAt}/quota`, {
        metadata: { name: "quota" },
        spec: { hard: { pods: "1" }, scopes: ["BestEffort"] },
      }),
      remove(`${quotasAt}/quota`),
    ],
  },
];
