import { type Case, at, patch, post, put } from "../step.ts";
import { withoutPodSecurity } from "./admission/labelled.ts";
import { podSpec, sampleOf } from "./objects.ts";

const pods = at("v1", "pods");
const services = at("v1", "services");
const container = { name: "main", image: "example.invalid/image:1" };
const env = (...list: object[]) => ({ ...podSpec, containers: [{ ...container, env: list }] });
const ports = (...list: object[]) => ({ ...podSpec, containers: [{ ...container, ports: list }] });

const doubtful: Record<string, object> = {
  "a variable twice": env({ name: "A", value: "1" }, { name: "A", value: "2" }),
  "a variable that extends itself": env({ name: "A", value: "1" }, { name: "A", value: "$(A)2" }),
  "a port twice": ports({ containerPort: 80 }, { containerPort: 80 }),
  "a port twice, by name": ports(
    { name: "a", containerPort: 80 },
    { name: "b", containerPort: 80 },
  ),
  "ports of one name in two containers": {
    ...podSpec,
    containers: ["one", "two"].map((name, index) => ({
      ...container,
      name,
      ports: [{ name: "http", containerPort: 80 + index }],
    })),
  },
  "a port at the host and not": ports({ containerPort: 80, hostPort: 80 }, { containerPort: 80 }),
  "half a byte": {
    ...podSpec,
    containers: [{ ...container, resources: { limits: { memory: "1.5" } } }],
  },
  millibytes: {
    ...podSpec,
    containers: [{ ...container, resources: { requests: { memory: "100m" } } }],
  },
  "a negative grace period": { ...podSpec, terminationGracePeriodSeconds: -1 },
  "pull secrets twice": { ...podSpec, imagePullSecrets: [{ name: "a" }, { name: "a" }, {}] },
  "aliases twice": {
    ...podSpec,
    hostAliases: [
      { ip: "10.0.0.1", hostnames: ["a"] },
      { ip: "10.0.0.1", hostnames: ["b"] },
    ],
  },
  "a spread of no Pods": {
    ...podSpec,
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway" },
    ],
  },
};

const template = (spec: object) => ({ metadata: { labels: { app: "one" } }, spec });
const deployment = (spec: object, name = "one") => ({
  metadata: { name },
  spec: { selector: { matchLabels: { app: "one" } }, template: template(spec) },
});
const service = (spec: object) => ({ metadata: { name: "one" }, spec });
const port = { port: 80 };

/** What is allowed, and told with a warning. */
export const warned: Case[] = [
  ...Object.entries(doubtful).map(([name, spec]): Case => ({
    name: `warnings: ${name}`,
    steps: withoutPodSecurity([
      post(`${pods}?dryRun=All`, { metadata: { name: "one" }, spec }),
      post(at("apps/v1", "deployments"), deployment(spec)),
      patch("merge", at("apps/v1", "deployments/one"), { metadata: { labels: { a: "b" } } }),
      patch("merge", at("apps/v1", "deployments/one"), {
        spec: { template: { metadata: { labels: { a: "b" } } } },
      }),
      post(`${at("batch/v1", "jobs")}?dryRun=All`, {
        metadata: { name: "one" },
        spec: { template: template({ ...spec, restartPolicy: "Never" }) },
      }),
    ]),
  })),
  {
    name: "warnings: names that are no labels",
    steps: [
      post(`${pods}?dryRun=All`, { ...sampleOf("Pod").object, metadata: { name: "a.b" } }),
      post(`${at("apps/v1", "deployments")}?dryRun=All`, deployment(podSpec, "a.b")),
      post(`${at("apps/v1", "deployments")}?dryRun=All`, deployment(podSpec, "x".repeat(70))),
      post(`${pods}?dryRun=All`, {
        ...sampleOf("Pod").object,
        metadata: {
          name: "a",
          annotations: { "scheduler.alpha.kubernetes.io/critical-pod": "" },
        },
      }),
    ],
  },
  {
    name: "warnings: Services",
    steps: [
      { externalName: "x.y", ports: [port] },
      { clusterIP: "None", ports: [port], sessionAffinity: "ClientIP" },
      { clusterIP: "None", ports: [port], externalIPs: ["1.2.3.4"] },
      { ports: [port], externalIPs: ["1.2.3.4"] },
      { type: "ExternalName", externalName: "x.y", externalIPs: ["1.2.3.4"] },
      { ports: [port], trafficDistribution: "PreferClose" },
    ].map((spec) => post(`${services}?dryRun=All`, service(spec))),
  },
];

export const nodePorts: Case[] = [
  {
    name: "node ports",
    steps: [
      post(services, service({ type: "NodePort", ports: [port] })),
      patch("merge", `${services}/one`, { metadata: { labels: { a: "b" } } }),
      put(`${services}/one`, service({ type: "NodePort", ports: [port] })),
      patch("merge", `${services}/one`, { spec: { type: "ClusterIP" } }),
      patch("merge", `${services}/one`, { spec: { type: "LoadBalancer" } }),
      post(services, {
        metadata: { name: "two" },
        spec: { type: "NodePort", ports: [{ port: 80, nodePort: 80 }] },
      }),
      post(`${services}?dryRun=All`, {
        metadata: { name: "two" },
        spec: { type: "ClusterIP", ports: [{ port: 80, nodePort: 30_500 }] },
      }),
      post(`${services}?dryRun=All`, {
        metadata: { name: "two" },
        spec: {
          type: "LoadBalancer",
          allocateLoadBalancerNodePorts: false,
          ports: [{ port: 80 }],
        },
      }),
      post(`${services}?dryRun=All`, {
        metadata: { name: "two" },
        spec: {
          type: "NodePort",
          ports: [
            { name: "a", port: 80 },
            { name: "b", port: 80, protocol: "UDP" },
          ],
        },
      }),
    ],
  },
];
