import { at, type Case, patch, post, type Step } from "../../step.ts";
import { labelled, podSecurityPrefix as prefix, settled, settleMs } from "./labelled.ts";

const pods = at("v1", "pods");

interface Changes {
  spec?: object;
  context?: object;
  container?: object;
  own?: object;
  annotations?: Record<string, string>;
}

const podSpec = ({ spec, context, container, own }: Changes) => ({
  automountServiceAccountToken: false,
  ...(context && { securityContext: context }),
  containers: [
    { name: "a", image: "i", ...(own && { securityContext: own }), ...container },
    { name: "b", image: "i" },
  ],
  ...spec,
});
const pod = (changes: Changes, name = "one") =>
  post(`${pods}?dryRun=All`, {
    metadata: { name, ...(changes.annotations && { annotations: changes.annotations }) },
    spec: podSpec(changes),
  });

const good: Changes = {
  context: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  spec: {
    containers: [
      {
        name: "a",
        image: "i",
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      },
    ],
  },
};

const samples: [string, Changes][] = [
  ["plain", {}],
  ["good", good],
  [
    "AppArmor",
    {
      context: { appArmorProfile: { type: "Unconfined" } },
      own: { appArmorProfile: { type: "Unconfined" } },
    },
  ],
  ["AppArmor of a container", { own: { appArmorProfile: { type: "Unconfined" } } }],
  ["capabilities", { own: { capabilities: { add: ["NET_RAW", "SYS_ADMIN", "CHOWN"] } } }],
  [
    "dropped capabilities",
    { own: { capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE", "CHOWN"] } } },
  ],
  ["host namespaces", { spec: { hostNetwork: true, hostPID: true, hostIPC: true } }],
  [
    "hostPath",
    {
      spec: {
        volumes: [
          { name: "v", hostPath: { path: "/x" } },
          { name: "w", hostPath: { path: "/y" } },
        ],
      },
    },
  ],
  [
    "other volumes",
    {
      spec: {
        volumes: [
          { name: "v", nfs: { server: "s", path: "/x" } },
          { name: "w", configMap: { name: "c" } },
        ],
      },
    },
  ],
  [
    "hostPort",
    {
      container: {
        ports: [
          { containerPort: 80, hostPort: 80 },
          { containerPort: 81, hostPort: 9 },
        ],
      },
    },
  ],
  [
    "probe host",
    {
      container: {
        livenessProbe: { httpGet: { path: "/", port: 80, host: "h" } },
        lifecycle: { preStop: { tcpSocket: { port: 80, host: "g" } } },
      },
    },
  ],
  ["privileged", { own: { privileged: true } }],
  ["procMount", { own: { procMount: "Unmasked" }, spec: { hostUsers: false } }],
  [
    "SELinux",
    {
      context: { seLinuxOptions: { type: "bad", user: "u" } },
      own: { seLinuxOptions: { role: "r", type: "container_engine_t" } },
    },
  ],
  [
    "seccomp",
    {
      context: { seccompProfile: { type: "Unconfined" } },
      own: { seccompProfile: { type: "Unconfined" } },
    },
  ],
  ["seccomp of one container", { own: { seccompProfile: { type: "RuntimeDefault" } } }],
  [
    "sysctls",
    {
      context: {
        sysctls: [
          { name: "kernel.msgmax", value: "1" },
          { name: "net.ipv4.tcp_rmem", value: "1" },
        ],
      },
    },
  ],
  [
    "root",
    { context: { runAsUser: 0, runAsNonRoot: false }, own: { runAsUser: 0, runAsNonRoot: false } },
  ],
  ["user of its own", { spec: { hostUsers: false }, own: { runAsUser: 0 } }],
  [
    "init containers",
    {
      spec: { initContainers: [{ name: "i", image: "i", securityContext: { privileged: true } }] },
    },
  ],
];

const levels = [
  {},
  { enforce: "privileged" },
  { enforce: "baseline" },
  { enforce: "restricted" },
  { enforce: "restricted", "enforce-version": "v1.20" },
  { enforce: "baseline", "enforce-version": "v1.28" },
  { enforce: "restricted", "enforce-version": "v1.34" },
  { enforce: "baseline", warn: "restricted", audit: "restricted" },
  { enforce: "privileged", warn: "restricted", "warn-version": "v1.24" },
  { warn: "restricted", "enforce-version": "v1.33" },
  { enforce: "privileged", warn: "privileged" },
];

const template = (changes: Changes) => ({
  metadata: { labels: { a: "b" } },
  spec: podSpec(changes),
});
const workloads = (changes: Changes): Step[] => [
  post(at("apps/v1", "deployments"), {
    metadata: { name: "one" },
    spec: { selector: { matchLabels: { a: "b" } }, template: template(changes) },
  }),
  post(at("apps/v1", "replicasets"), {
    metadata: { name: "one" },
    spec: { selector: { matchLabels: { a: "b" } }, template: template(changes) },
  }),
  post(at("batch/v1", "jobs"), {
    metadata: { name: "one" },
    spec: { template: { spec: { ...podSpec(changes), restartPolicy: "Never" } } },
  }),
  post(at("batch/v1", "cronjobs"), {
    metadata: { name: "one" },
    spec: {
      schedule: "* * * * *",
      jobTemplate: {
        spec: { template: { spec: { ...podSpec(changes), restartPolicy: "Never" } } },
      },
    },
  }),
];

const existing = (name: string, changes: Changes) =>
  post(pods, { metadata: { name }, spec: podSpec(changes) });

export const podSecurity: Case[] = [
  ...levels.map((labels): Case => ({
    name: `pod security ${JSON.stringify(labels)}`,
    steps: [labelled(labels), ...settled(samples.map(([, changes]) => pod(changes)))],
  })),
  {
    name: "pod security of templates by default",
    steps: workloads({ spec: { hostNetwork: true } }),
  },
  {
    name: "pod security of templates",
    steps: [labelled({ enforce: "restricted" }), ...settled(workloads({}))],
  },
  {
    name: "pod security warns of templates",
    steps: [labelled({ warn: "baseline" }), ...settled(workloads({ own: { privileged: true } }))],
  },
  {
    name: "pod security labels",
    steps: [
      labelled({ enforce: "x" }),
      labelled({ "enforce-version": "1.2", warn: "y", audit: "z" }),
      post("/api/v1/namespaces", {
        metadata: { name: "$ns-b", labels: { [`${prefix}enforce`]: "x" } },
      }),
      labelled({ enforce: "privileged", "enforce-version": "latest" }),
    ],
  },
  {
    name: "pod security of existing Pods",
    steps: [
      labelled({ enforce: "privileged" }),
      { ...existing("a", {}), settleMs },
      existing("b", {}),
      existing("c", { own: { privileged: true } }),
      existing("d", good),
      existing("e", {}),
      { ...labelled({ enforce: "baseline" }), settleMs },
      labelled({ enforce: "restricted" }),
      labelled({ enforce: "baseline" }),
      labelled({ "enforce-version": "v1.20" }),
      { ...patch("strategic", `${pods}/c`, { metadata: { labels: { x: "y" } } }), settleMs },
      patch("strategic", `${pods}/c`, { spec: { containers: [{ name: "a", image: "j" }] } }),
      { ...labelled({ enforce: "privileged" }), settleMs },
      patch("merge", "/api/v1/namespaces/$ns", { metadata: { labels: null } }),
      { ...patch("strategic", `${pods}/c`, { metadata: { labels: { x: "z" } } }), settleMs },
      patch("strategic", `${pods}/c`, { spec: { containers: [{ name: "a", image: "k" }] } }),
    ],
  },
];
