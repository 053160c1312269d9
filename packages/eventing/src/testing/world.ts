/** What tests of this room share: publisher and dispatcher over HTTP, on a real API server, with sinks that are servers of the test. */
import { mkdtempSync } from "node:fs";
import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { functionCrd, type Subscription, subscriptions } from "@spry/function";
import { type Clock, KubeClient, resources } from "@spry/kube";
import { openSqliteQueue, type QueueLimits } from "@spry/queue";
import { patience } from "@spry/test-kit";
import { afterEach } from "vitest";
import { subscriptionCrd } from "../definitions/subscription-crd.ts";
import { type Eventing, startEventing } from "../start.ts";
import { Wire } from "./wire.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server until the end of the test; returns its port. */
export async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface StartOptions {
  limits?: Partial<QueueLimits>;
  clock?: Clock | undefined;
  former?: string | undefined;
}

/** Eventing of one process, with a queue and an API server of its own. */
export class World {
  readonly client: KubeClient;
  readonly eventing: Eventing;
  readonly directory: string;
  /** Between eventing and the API server; `client` has a way of its own. */
  readonly wire: Wire;
  port = 0;

  private constructor(client: KubeClient, wire: Wire, eventing: Eventing, directory: string) {
    this.client = client;
    this.wire = wire;
    this.eventing = eventing;
    this.directory = directory;
  }

  /** With a clock, delivering and the queue have its time. */
  static async create(limits: Partial<QueueLimits> = {}, clock?: Clock): Promise<World> {
    const api = await createApiServer({ dataDir: ":memory:" });
    cleanups.push(() => api.close());
    const client = new KubeClient(api.transport());
    const webhook = { url: "https://127.0.0.1:1/convert", caBundle: "" };
    await client.apply(resources.customResourceDefinitions, subscriptionCrd(webhook));
    // Otherwise it is asked for again and again.
    await client.apply(resources.customResourceDefinitions, functionCrd());
    const directory = mkdtempSync(path.join(tmpdir(), "eventing-"));
    return World.#start(client, new Wire(api.transport()), directory, { limits, clock });
  }

  /** The same queue, served by another process; this one has ended. */
  async restarted(
    meanwhile: () => Promise<unknown>,
    { directory = this.directory, ...rest }: StartOptions & { directory?: string } = {},
  ): Promise<World> {
    await this.eventing.close();
    await meanwhile();
    return World.#start(this.client, this.wire, directory, rest);
  }

  static async #start(
    client: KubeClient,
    wire: Wire,
    directory: string,
    { limits = {}, clock, former }: StartOptions,
  ): Promise<World> {
    const time = clock ? { clock } : {};
    const eventing = startEventing({
      client: new KubeClient(wire.transport),
      ...time,
      openQueue: () => openSqliteQueue({ directory, limits, ...time }),
      ...(former && { openFormer: () => openSqliteQueue({ directory: former }) }),
      allowPrivate: true,
    });
    cleanups.push(() => eventing.close());
    const world = new World(client, wire, eventing, directory);
    const { publisher } = eventing;
    await new Promise<void>((resolve) => publisher.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => {
      publisher.closeAllConnections();
      publisher.close();
    });
    world.port = (publisher.address() as AddressInfo).port;
    await world.until(
      async () => (await world.send({ method: "GET", path: "/readyz" })).status === 200,
    );
    return world;
  }

  async until(ask: () => Promise<boolean> | boolean): Promise<void> {
    const deadline = performance.now() + patience.condition;
    while (!(await ask())) {
      if (performance.now() > deadline) throw new Error(`still not: ${String(ask)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  send(options: {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
  }): Promise<{ status: number; body: string }> {
    const { method = "POST", path: at = "/publish", headers = {}, body } = options;
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        { port: this.port, host: "127.0.0.1", method, path: at, headers },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
        },
      );
      request.on("error", reject);
      request.end(body);
    });
  }

  publish(type: string, id: string, rest: object = {}): Promise<{ status: number; body: string }> {
    const headers = { "content-type": "application/cloudevents+json" };
    const event = { specversion: "1.0", id, source: "shop", type, ...rest };
    return this.send({ headers, body: JSON.stringify(event) });
  }

  /** A Service whose Pods are one server of the test, and a Subscription to it of the type `<name>.v1`. */
  async subscribe(name: string, port: number, spec: object = {}, address = "127.0.0.1") {
    const metadata = { name, namespace: "default" };
    await this.client.apply(resources.services, { metadata, spec: { ports: [{ port: 80 }] } });
    await this.client.apply(resources.endpointSlices, {
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: "", port }],
    });
    const subscription: Subscription = {
      metadata,
      spec: {
        sink: `http://${name}.default.svc.cluster.local`,
        source: "shop",
        types: [`${name}.v1`],
        ...spec,
      },
    };
    await this.client.apply(subscriptions, subscription);
    const queue = this.eventing.queue();
    await this.until(async () => (await queue?.find(`subscription/default/${name}`)) !== undefined);
  }

  async deadOf(name: string) {
    const consumer = await this.eventing.queue()?.find(`subscription/default/${name}`);
    return (await consumer?.deadLetters({ limit: 10 })) ?? [];
  }
}
