/** Set-up for this room's tests: real images, a real registry, real processes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  assembleImage,
  type ContainerConfig,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import {
  type Clock,
  type Deployment,
  KubeClient,
  type Logger,
  type Pod,
  resources,
  type Transport,
} from "@spry/kube";
import { onTestFinished } from "vitest";
import { startControllers } from "./controllers/start-controllers.ts";
import { createNode, type MachineNode, type NodeOptions } from "./node/node.ts";
import { processSandbox } from "./sandbox/process-sandbox.ts";
import { type Sandbox } from "./sandbox/sandbox.ts";

/** The registry host that image names of the tests have. */
export const registryHost = "registry.spry.localhost";

export function temporaryDirectory(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-machine-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  return dir;
}

export interface TestRegistry {
  mirrors: Record<string, { url: string }>;
  /** Puts an image there; returns its name by digest. */
  push(
    name: string,
    files: Record<string, string> | Record<string, string>[],
    config?: ContainerConfig,
  ): Promise<string>;
}

export async function startRegistry(): Promise<TestRegistry> {
  const registry = createRegistry({ dir: temporaryDirectory() });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await registry.close();
  });
  const mirrors: Record<string, { url: string }> = {
    [registryHost]: { url: `http://127.0.0.1:${server.port}` },
  };
  const client = new RegistryClient({ resolve: (host) => mirrors[host] });
  return {
    mirrors,
    async push(name, files, config = {}) {
      // Of several lists of files each is a layer.
      const layers = (Array.isArray(files) ? files : [files]).map((list) =>
        createLayer(
          Object.entries(list).map(([file, text]) => ({ path: file, content: Buffer.from(text) })),
        ),
      );
      const labels = { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` };
      const image = assembleImage({
        layers: await Promise.all(layers),
        config: { Labels: labels, ...config },
      });
      const target = parseImageName(`${registryHost}/${name}`);
      const { digest } = await pushImage(client, image, target);
      return `${registryHost}/${target.repository}@${digest}`;
    },
  };
}

/** Waits until a check passes; its last failure is the test's. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 15_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

export interface TestMachine {
  client: KubeClient;
  registry: TestRegistry;
  server: ApiServer;
  dataDir: string;
  node: MachineNode;
  /** Another agent on the same data, as after a restart. The earlier one must have been stopped. */
  restartNode(): MachineNode;
}

/** What `kube-root-ca.crt` holds: nothing connects here. */
const rootCa = "no certificate";

/** A whole machine: API server, controllers, a registry, and a node that runs real processes. */
export async function startMachine(
  options: {
    clock?: Clock;
    measureDisk?: NodeOptions["measureDisk"];
    /** For all agents of the machine; by default, each has plain processes. */
    openSandbox?: (dataDir: string) => Promise<Sandbox>;
    log?: Logger;
    /** What lies between the node and the API server. */
    nodeTransport?: (transport: Transport) => Transport;
  } = {},
): Promise<TestMachine> {
  const { clock, measureDisk, log, nodeTransport = (transport) => transport } = options;

  const ending = new AbortController();
  const registry = await startRegistry();
  const dataDir = temporaryDirectory();
  let node: MachineNode;
  const kubelet = () => node.kubelet;
  const server = await createApiServer({ dataDir: ":memory:", kubelet });
  const client = new KubeClient(server.transport());
  const work: Promise<void>[] = [];
  const opened = await options.openSandbox?.(dataDir);
  const startNode = () => {
    const sandbox = opened ?? processSandbox({ dataDir });
    node = createNode({
      client: client.through(nodeTransport),
      name: "here",
      dataDir,
      sandbox,
      mirrors: registry.mirrors,
      ...(measureDisk && { measureDisk }),
      ...(log && { log }),
    });
    work.push(node.run(ending.signal));
    return node;
  };
  onTestFinished(async () => {
    await node.stop({ pods: "stop" });
    ending.abort();
    await Promise.all(work);
    await server.close();
  });
  startNode();
  await startControllers({
    client,
    rootCa,
    signal: ending.signal,
    ...(clock ? { clock } : {}),
  });
  const machine = { client, registry, server, dataDir, restartNode: startNode };
  return Object.defineProperty(machine, "node", { get: () => node }) as TestMachine;
}

/** Watches that keep back what they tell while they are held, and then tell it within one turn of the event loop. */
export class HeldWatches {
  #release: (() => void) | undefined;
  #released: Promise<void> = Promise.resolve();

  hold(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#released = promise;
    this.#release = resolve;
  }

  release(): void {
    this.#release?.();
  }

  readonly through = (transport: Transport): Transport => {
    return async (request) => {
      const response = await transport(request);
      if (!response.body || !new URL(request.url).searchParams.has("watch")) return response;
      return new Response(response.body.pipeThrough(this.#held()), response);
    };
  };

  #held(): TransformStream<Uint8Array, Uint8Array> {
    const kept: Uint8Array[] = [];
    const pass = async (controller: TransformStreamDefaultController<Uint8Array>) => {
      await this.#released;
      for (const each of kept.splice(0)) controller.enqueue(each);
    };
    return new TransformStream({
      transform: (chunk, controller) => {
        if (kept.push(chunk) === 1) void pass(controller);
      },
    });
  }
}

/** Pods of the default namespace with this label, oldest first. */
export async function podsOf(client: KubeClient, app: string): Promise<Pod[]> {
  const { items } = await client.list(resources.pods, {
    namespace: "default",
    labelSelector: `app=${app}`,
  });
  return items;
}

export function deploymentOf(
  name: string,
  image: string,
  more: Partial<Deployment["spec"]> = {},
): Deployment {
  return {
    metadata: { namespace: "default", name },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: "main",
              image,
              ports: [{ name: "http", containerPort: 8080 }],
              readinessProbe: { httpGet: { path: "/", port: "http" } },
            },
          ],
        },
      },
      ...more,
    },
  };
}
