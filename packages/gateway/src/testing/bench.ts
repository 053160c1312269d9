/** For the tests of this room: a real API server in process, Pods that are HTTP servers, a gateway. */
import * as http from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createApiServer } from "@spry/apiserver";
import { type Function, functionCrd, functions, knativeNames, labels } from "@spry/function";
import { type EndpointSlice, KubeClient, resources, type Transport } from "@spry/kube";
import { createGateway, type GatewayOptions, type ListenOptions } from "../gateway.ts";
import { defineKnative, KnativeObjects } from "./knative.ts";

export type PodHandler = (request: http.IncomingMessage, response: http.ServerResponse) => unknown;

/** A Pod's server on an address of its own, all on one port like Functions are. */
export interface TestPod {
  readonly address: string;
  readonly port: number;
  readonly server: http.Server;
  /** Requests seen, in order. */
  readonly seen: http.IncomingMessage[];
  stop(): Promise<void>;
}

export interface Answered {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Bench {
  readonly client: KubeClient;
  /** For another gateway. */
  readonly apiTransport: Transport;
  /** Between the gateway and the API server. */
  readonly network: Network;
  readonly port: number;
  readonly gateway: Awaited<ReturnType<ReturnType<typeof createGateway>["listen"]>>;
  readonly kit: ReturnType<typeof createGateway>;
  pod(handler: PodHandler): Promise<TestPod>;
  /** Sets which Pods are ready (and which end but serve) behind a Service in `default`, usually that of `hello`. */
  endpoints(ready: TestPod[], ending?: TestPod[], service?: string): Promise<void>;
  /** Sets which Pods of a Revision in `default` are ready. */
  revisionPods(revision: string, ready: TestPod[], ending?: TestPod[]): Promise<void>;
  readonly knative: KnativeObjects;
  /** Until the gateway has seen what has been written. */
  heard(): Promise<void>;
  fn(conditions?: NonNullable<Function["status"]>["conditions"], name?: string): Promise<void>;
  service(name?: string, labels?: Record<string, string>): Promise<void>;
  call(options?: CallOptions): Promise<Answered>;
  raw(): Promise<Socket>;
  /** Everything that comes back on a connection of its own for the bytes given (latin1). */
  exchange(bytes: string): Promise<string>;
  close(): Promise<void>;
}

export interface CallOptions {
  method?: string;
  path?: string;
  host?: string;
  headers?: http.OutgoingHttpHeaders;
  body?: string | Buffer;
  agent?: http.Agent;
}

/** What the gateway wants to have before it shows its counts. */
export const countsToken = "token-of-the-test";

let lastAddress = 10;

export interface BenchOptions extends Partial<GatewayOptions> {
  /** Whether its definitions are installed from the start. */
  withKnative?: boolean;
  /** What else is there when the gateway starts. */
  before?: (client: KubeClient) => Promise<void>;
  https?: NonNullable<ListenOptions["https"]>;
}

export async function startBench({
  withKnative = false,
  before,
  https,
  ...options
}: BenchOptions = {}): Promise<Bench> {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  await client.create(resources.customResourceDefinitions, functionCrd());
  if (withKnative) await defineKnative(client);
  await before?.(client);
  const network = new Network(api.transport());
  const watching = new KubeClient((request) => network.send(request));
  const kit = createGateway({
    client: watching,
    drainMs: 500,
    countsToken: () => countsToken,
    ...options,
  });
  const gateway = await kit.listen({ host: "127.0.0.1", port: 0, ...(https && { https }) });
  const pods: TestPod[] = [];
  const bench: Bench = {
    client,
    apiTransport: api.transport(),
    network,
    gateway,
    kit,
    port: gateway.port,
    async pod(handler) {
      const pod = await startPod(handler);
      pods.push(pod);
      return pod;
    },
    endpoints: (ready, ending = [], service = "hello") =>
      writeEndpoints(client, service, ready, ending),
    revisionPods: (revision, ready, ending = []) =>
      writeEndpoints(client, knativeNames.privateService(revision), ready, ending),
    knative: new KnativeObjects(client),
    heard,
    async fn(conditions = [], name = "hello") {
      const spec = { runtime: "nodejs24", source: { inline: { source: "module.exports={}" } } };
      const metadata = { name, namespace: "default" };
      await client.create(functions, { metadata, spec });
      if (conditions.length > 0) {
        const status = { conditions };
        await client.patch(functions, metadata, { status }, { subresource: "status" });
      }
      await heard();
    },
    async service(name = "hello", own = { [labels.functionName]: name }) {
      await client.create(resources.services, {
        metadata: { name, namespace: "default", labels: own },
        spec: { ports: [{ name: "http", port: 80, targetPort: 8080 }] },
      });
      await heard();
    },
    call: (call = {}) => callGateway(gateway.port, call),
    raw: () => connected(gateway.port),
    async exchange(bytes) {
      const socket = await connected(gateway.port);
      socket.write(bytes, "latin1");
      try {
        return (await bodyOf(socket)).toString("latin1");
      } finally {
        socket.destroy();
      }
    },
    async close() {
      await gateway.close();
      await Promise.all(pods.map((pod) => pod.stop()));
      await api.close();
    },
  };
  await kit.ready;
  return bench;
}

/** A way to the API server that can be cut. */
class Network {
  readonly #real: Transport;
  #cut = new AbortController();

  constructor(real: Transport) {
    this.#real = real;
  }

  send(request: Request): Promise<Response> {
    const signal = AbortSignal.any([request.signal, this.#cut.signal]);
    if (signal.aborted) return Promise.reject(new Error("connect ECONNREFUSED"));
    return this.#real(new Request(request, { signal }));
  }

  /** Ends the watches under way as well. */
  cut(): void {
    this.#cut.abort(new Error("read ECONNRESET"));
  }

  restore(): void {
    this.#cut = new AbortController();
  }
}

async function startPod(handler: PodHandler): Promise<TestPod> {
  const seen: http.IncomingMessage[] = [];
  const server = http.createServer({ maxHeaderSize: 32 * 1024 }, (request, response) => {
    seen.push(request);
    handler(request, response);
  });
  server.maxHeadersCount = 0;
  const address = `127.0.7.${(lastAddress = (lastAddress % 250) + 1)}`;
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { address, port, server, seen, stop };
}

/** One slice for each Pod: their ports differ here. */
async function writeEndpoints(
  client: KubeClient,
  service: string,
  ready: TestPod[],
  ending: TestPod[],
): Promise<void> {
  const wanted = new Map([...ready, ...ending].map((pod) => [nameOf(service, pod), pod]));
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const { items } = await client.list(resources.endpointSlices, { labelSelector });
  for (const [name, pod] of wanted) {
    const isReady = ready.includes(pod);
    const slice: EndpointSlice = {
      metadata: {
        name,
        namespace: "default",
        labels: { "kubernetes.io/service-name": service },
      },
      addressType: "IPv4",
      endpoints: [
        {
          addresses: [pod.address],
          conditions: { ready: isReady, serving: true, terminating: !isReady },
        },
      ],
      ports: [{ name: "http", port: pod.port, protocol: "TCP" }],
    };
    const before = items.find(({ metadata }) => metadata.name === name);
    if (!before) await client.create(resources.endpointSlices, slice);
    else
      await client.update(resources.endpointSlices, {
        ...before,
        ...slice,
        metadata: before.metadata,
      });
  }
  for (const { metadata } of items) {
    if (wanted.has(metadata.name ?? "")) continue;
    const target = { namespace: "default", name: metadata.name ?? "" };
    await client.delete(resources.endpointSlices, target);
  }
  await heard();
}

/**
 * Until the gateway has heard of what was written, through its watches: some turns of the event loop later, not some
 * time, because the API server is in this process.
 */
async function heard(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function nameOf(service: string, pod: TestPod): string {
  return `${service}-${pod.address.replaceAll(".", "-")}-${pod.port}`;
}

export function callGateway(port: number, call: CallOptions): Promise<Answered> {
  const { method = "GET", path = "/", host = "hello.default.localhost", agent = false } = call;
  return new Promise((resolve, reject) => {
    const headers = { host, ...call.headers };
    const maxHeaderSize = 64 * 1024;
    const to = { host: "127.0.0.1", port, method, path };
    const request = http.request({ ...to, headers, agent, maxHeaderSize });
    request.once("error", reject);
    request.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const body = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    request.end(call.body);
  });
}

export async function bodyOf(request: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.once("connect", () => resolve(socket)).once("error", reject);
  });
}
