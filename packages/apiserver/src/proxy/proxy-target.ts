import {
  type EndpointSlice,
  type Pod,
  type Service,
  StatusError,
  transportOrigin,
} from "@spry/kube";
import { type Backend } from "../aggregation/backend.ts";
import { type Engine } from "../engine.ts";
import { badRequest, notFound } from "../errors.ts";
import { kubeletFailure } from "../handlers/pod-subresources.ts";
import { type UserInfo } from "../request.ts";
import { type ProxyPath } from "./proxy-path.ts";

type Body = ReadableStream<Uint8Array>;

/** Where a request is passed on to. */
export type ProxyTarget = PodPort | NodePath | ApiBackend;

/** A port of a Pod, to which its node connects: the API server never connects to an address from an object. */
export interface PodPort {
  kind: "pod";
  scheme: "http" | "https";
  /** One connection. Throws a `StatusError`. */
  open: (this: void, body: Body, signal: AbortSignal) => Promise<Body>;
}

/** Another API server, to which this one vouches for the user. */
export interface ApiBackend {
  kind: "server";
  backend: Backend;
  user: UserInfo;
}

export interface NodePath {
  kind: "node";
  /** Requests it from the node's agent. */
  ask(signal: AbortSignal): Promise<Response>;
}

/** Looks up what the path names. Throws a `StatusError`. */
export function proxyTargetOf(engine: Engine, path: ProxyPath): PodPort | NodePath {
  if (path.kind === "nodes") return nodeTarget(engine, path);
  const { pod, port } = path.kind === "pods" ? podOf(engine, path) : podBehind(engine, path);
  const { name = "", namespace = "" } = pod.metadata;
  return {
    kind: "pod",
    scheme: path.scheme,
    async open(body, signal) {
      const kubelet = engine.kubelet(pod.spec?.nodeName ?? "");
      if (!kubelet) throw unreachable(`pod ${name} is not on a node that is connected`);
      const url = `${transportOrigin}/portForward/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}?port=${port}`;
      const answer = await kubelet(
        new Request(url, { method: "POST", body, signal, duplex: "half" } as RequestInit),
      );
      if (answer.ok && answer.body) return answer.body;
      const { message } = await kubeletFailure(answer, `pod "${name}"`);
      throw unreachable(message);
    },
  };
}

function podOf(engine: Engine, { namespace, name, port }: ProxyPath): { pod: Pod; port: number } {
  const pod = find(engine, "/pods", namespace, name) as Pod;
  const number = port === "" ? firstPortOf(pod) : portOf(pod, port);
  return { pod, port: number };
}

/** Without a port in the path: the first that the Pod declares, else 80. */
function firstPortOf({ spec }: Pod): number {
  return spec?.containers.flatMap(({ ports }) => ports ?? [])[0]?.containerPort ?? 80;
}

function portOf({ spec }: Pod, port: string): number {
  if (/^\d{1,5}$/.test(port)) return Number(port);
  const ports = spec?.containers.flatMap(({ ports: each }) => each ?? []) ?? [];
  const named = ports.find(({ name }) => name === port);
  if (!named) throw badRequest(`pod has no port ${JSON.stringify(port)}`);
  return named.containerPort;
}

/** A Pod that is a ready endpoint of the Service, in its namespace, and the port on which it listens. */
function podBehind(
  engine: Engine,
  { namespace, name, port }: ProxyPath,
): { pod: Pod; port: number } {
  const { spec = {} } = find(engine, "/services", namespace, name) as Service;
  const wanted = spec.ports?.find(
    (each) => port === "" || each.name === port || String(each.port) === port,
  );
  if (!wanted)
    throw unreachable(`no service port ${JSON.stringify(port)} found for service "${name}"`);
  const candidates = slicesOf(engine, namespace, name).flatMap(({ endpoints = [], ports = [] }) => {
    const number = ports?.find((each) => (each.name ?? "") === (wanted.name ?? ""))?.port;
    if (number == null) return [];
    return endpoints.flatMap(({ conditions, targetRef }) => {
      if (conditions?.ready === false || targetRef?.kind !== "Pod") return [];
      const place = { collection: "/pods", namespace, name: targetRef.name ?? "" };
      const pod = engine.store.get(place)?.object as Pod | undefined;
      return pod ? [{ pod, port: number }] : [];
    });
  });
  const chosen = candidates[Math.floor(Math.random() * candidates.length)];
  if (!chosen) throw unreachable(`no endpoints available for service "${name}"`);
  return chosen;
}

function slicesOf({ store }: Engine, namespace: string, service: string): Partial<EndpointSlice>[] {
  return store
    .list("discovery.k8s.io/endpointslices", namespace)
    .map(({ object }) => object as unknown as EndpointSlice)
    .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === service);
}

/** Only requests that read: running commands in Pods requires rights on the Pods. */
function nodeTarget(engine: Engine, { name, port, target }: ProxyPath): NodePath {
  find(engine, "/nodes", "", name);
  const kubelet = engine.kubelet(name);
  if (!kubelet || !["", "10250", "https"].includes(port))
    throw unreachable(`node ${name} does not answer${port ? ` at port ${port}` : ""}`);
  if (/^\/+(exec|attach|portforward|run)/i.test(target))
    throw new StatusError({
      code: 405,
      message: "commands do not pass through nodes/proxy: use pods/exec",
    });
  return {
    kind: "node",
    ask: (signal) => kubelet(new Request(transportOrigin + target, { signal })),
  };
}

function find({ store }: Engine, collection: string, namespace: string, name: string): unknown {
  const stored = store.get({ collection, namespace, name });
  if (!stored) throw notFound({ group: "", plural: collection.slice(1) }, name);
  return stored.object;
}

function unreachable(message: string): StatusError {
  const text = `error trying to reach service: ${message}`;
  return new StatusError({ code: 503, reason: "ServiceUnavailable", message: text });
}
