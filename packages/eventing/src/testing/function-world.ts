/** A Function that can be away, called through a gateway, with eventing whose time is the test's own. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { functions, labels } from "@spry/function";
import { createGateway } from "@spry/gateway";
import { KubeClient, ManualClock, resources } from "@spry/kube";
import { onTestFinished } from "vitest";
import { type Call } from "../calls/call.ts";
import { World } from "./world.ts";

export interface Seen {
  headers: IncomingMessage["headers"];
  body: string;
}

/** A server that listens or not, always at the same port. */
export class Pod {
  readonly seen: Seen[] = [];
  status = 200;
  port = 0;
  #server: Server | undefined;
  #held: Promise<void> | undefined;

  /** Responses wait until what is returned is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return resolve;
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (part: string) => (body += part));
      request.on("end", () => {
        this.seen.push({ headers: request.headers, body });
        const answer = () => response.writeHead(this.status).end("done");
        void (this.#held ?? Promise.resolve()).then(answer);
      });
    });
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(this.port, "127.0.0.1", resolve),
    );
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }
}

export class FunctionWorld {
  readonly clock: ManualClock;
  world: World;
  gatewayPort = 0;

  private constructor(world: World, clock: ManualClock) {
    this.world = world;
    this.clock = clock;
  }

  static async create(): Promise<FunctionWorld> {
    const clock = new ManualClock(Date.now());
    const made = new FunctionWorld(await World.create({}, clock), clock);
    await made.#listen();
    return made;
  }

  get client(): KubeClient {
    return this.world.client;
  }

  async #listen(): Promise<void> {
    const client = new KubeClient(this.world.wire.transport);
    const gateway = createGateway({ client, calls: this.world.eventing.calls, drainMs: 0 });
    const listening = await gateway.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => listening.close());
    await gateway.ready;
    this.gatewayPort = listening.port;
  }

  /** Another process takes the place of this one. */
  async restart(): Promise<void> {
    this.world = await this.world.restarted(async () => {}, { clock: this.clock });
    await this.#listen();
  }

  /** A Function whose only Pod this is. */
  async fn(name: string, port: number, spec: object = {}, status?: object): Promise<void> {
    const metadata = { name, namespace: "default" };
    const source = { inline: { source: "x" } };
    await this.client.apply(functions, {
      metadata,
      spec: { runtime: "nodejs24", source, ...spec },
    });
    if (status) await this.client.patch(functions, metadata, { status }, { subresource: "status" });
    await this.client.apply(resources.services, {
      metadata: { ...metadata, labels: { [labels.functionName]: name } },
      spec: { ports: [{ port: 80 }] },
    });
    await this.client.apply(resources.endpointSlices, {
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      endpoints: port === 0 ? [] : [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
      ports: [{ name: "", port }],
    });
  }

  /** The path of its state. */
  async submit(name: string, headers: Record<string, string> = {}): Promise<string> {
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${this.gatewayPort}/async/default/${name}/`, {
        method: "POST",
        headers: { prefer: "respond-async", ...headers },
        body: "{}",
      });
      await response.text();
      if (response.status === 202) return new URL(response.headers.get("location") ?? "").pathname;
      // The gateway has not seen the Function yet.
      if (response.status !== 404) throw new Error(`HTTP ${response.status}`);
    }
  }

  async state(location: string): Promise<Call> {
    const response = await fetch(`http://127.0.0.1:${this.gatewayPort}${location}`);
    return (await response.json()) as Call;
  }

  /** Lets time pass in steps, with real time for what is under way in between, until that is so. */
  async until(ask: () => boolean | Promise<boolean>, stepMs = 50): Promise<void> {
    await this.world.until(async () => {
      await this.clock.advance(stepMs);
      return ask();
    });
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 250) {
      await this.clock.advance(Math.min(left, 250));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}
