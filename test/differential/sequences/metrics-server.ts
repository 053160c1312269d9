/** What Pods use, as a case writes it into their annotation: told by `metrics.k8s.io`, or by the node of the embedded side. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import path from "node:path";
import {
  type Informer,
  type KubeClient,
  matchesLabels,
  parseLabelSelector,
  type Pod,
  quantityValue,
  type Resource,
  type Transport,
} from "@spry/kube";

/** `{ "<container>": { "cpu": "100m", "memory": "64Mi" } }` */
export const usageAnnotation = "stage/usage";

type Usage = Record<string, Record<string, string>>;
const group = "metrics.k8s.io";
const version = "v1beta1";
/** Samples count only when they are later than the Pod's readiness: these always are. */
const aheadMs = 60_000;

const sampledAt = () => new Date(Date.now() + aheadMs).toISOString().replace(/\.\d+Z$/, "Z");

function usageOf(pod: Pod): Usage | undefined {
  const text = pod.metadata.annotations?.[usageAnnotation];
  return pod.status?.phase === "Running" && text ? (JSON.parse(text) as Usage) : undefined;
}

/** The part of a kubelet that the embedded API server asks for metrics. */
export function measuringNode(pods: () => Iterable<Pod>): Transport {
  return () => {
    const time = sampledAt();
    const measured = [...pods()].flatMap((pod) => {
      const usage = usageOf(pod);
      if (!usage) return [];
      const containers = Object.entries(usage).map(([name, { cpu = "0", memory = "0" }]) => ({
        name,
        cpu: { time, usageNanoCores: Math.round(quantityValue(cpu) * 1e9) },
        memory: { time, workingSetBytes: quantityValue(memory) },
      }));
      return { podRef: { uid: pod.metadata.uid }, containers };
    });
    return Promise.resolve(Response.json({ pods: measured }));
  };
}

const services: Resource = {
  group: "",
  version: "v1",
  kind: "Service",
  plural: "services",
  namespaced: true,
};
const apiServices: Resource = {
  group: "apiregistration.k8s.io",
  version: "v1",
  kind: "APIService",
  plural: "apiservices",
  namespaced: false,
};

const service = { namespace: "kube-system", name: "stage-metrics" };

/** Serves `metrics.k8s.io` to a real cluster, aggregated into its API, at an address of this machine that it reaches. */
export async function serveMetrics(
  client: KubeClient,
  pods: Informer<Pod>,
  scratch: string,
  address = "127.0.0.1",
): Promise<{ close(): void }> {
  const [key, cert] = ["metrics.key", "metrics.crt"].map((name) => path.join(scratch, name)) as [
    string,
    string,
  ];
  const subject = "-subj /CN=localhost -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:P-256";
  const files = ["-keyout", key, "-out", cert];
  execFileSync("openssl", ["req", "-x509", ...subject.split(" "), ...files], { stdio: "ignore" });
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(cert) },
    (request, response) => {
      const url = new URL(request.url ?? "/", "https://localhost");
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answerTo(url, pods)));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as { port: number };
  // An address of loopback may not be named.
  const externalName = address === "127.0.0.1" ? "localhost" : address;
  const spec = { type: "ExternalName", externalName, ports: [{ port }] };
  await client.create(services, { metadata: service, spec } as never);
  await client.create(apiServices, {
    metadata: { name: `${version}.${group}` },
    spec: {
      group,
      version,
      service: { ...service, port },
      insecureSkipTLSVerify: true,
      groupPriorityMinimum: 100,
      versionPriority: 100,
    },
  } as never);
  return {
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Takes it out of the cluster's API again. */
export async function withdrawMetrics(client: KubeClient): Promise<void> {
  await client.delete(apiServices, { name: `${version}.${group}` });
  await client.delete(services, service);
}

function answerTo({ pathname, searchParams }: URL, pods: Informer<Pod>): object {
  const apiVersion = `${group}/${version}`;
  const namespace = /\/namespaces\/([^/]+)\/pods$/.exec(pathname)?.[1];
  if (!namespace) {
    const resources = [
      {
        name: "pods",
        singularName: "",
        namespaced: true,
        kind: "PodMetrics",
        verbs: ["get", "list"],
      },
    ];
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion: apiVersion, resources };
  }
  const requirements = parseLabelSelector(searchParams.get("labelSelector") ?? "");
  const items = [...pods.list()].flatMap((pod) => {
    const { metadata } = pod;
    const usage = usageOf(pod);
    if (!usage || metadata.namespace !== namespace || !matchesLabels(requirements, metadata.labels))
      return [];
    const containers = Object.entries(usage).map(([name, used]) => ({ name, usage: used }));
    return {
      metadata: { name: metadata.name, namespace },
      timestamp: sampledAt(),
      window: "5s",
      containers,
    };
  });
  return { kind: "PodMetricsList", apiVersion, metadata: {}, items };
}
