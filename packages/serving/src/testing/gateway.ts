/** A gateway as the scaler sees it: `GET /counts` over real HTTP, with lines that the test writes. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { type CountsLine, countsPath } from "@spry/function";
import { type Clock } from "@spry/kube";

export class CountingGateway implements AsyncDisposable {
  readonly name: string;
  readonly #server: Server;
  readonly #listeners = new Set<ServerResponse>();
  readonly #counts = new Map<string, CountsLine>();

  static async start(name = "g1"): Promise<CountingGateway> {
    const gateway = new CountingGateway(name);
    await new Promise<void>((resolve) => gateway.#server.listen(0, "127.0.0.1", resolve));
    return gateway;
  }

  private constructor(name: string) {
    this.name = name;
    this.#server = createServer((request, response) => {
      if (request.url !== countsPath) return void response.writeHead(404).end();
      this.#listeners.add(response);
      response.on("close", () => this.#listeners.delete(response));
      response.writeHead(200).write("\n");
      for (const line of this.#counts.values()) response.write(`${JSON.stringify(line)}\n`);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many read the counts. */
  get readers(): number {
    return this.#listeners.size;
  }

  /** Pushes a change of a Revision's counts. */
  say(revision: string, counts: Partial<CountsLine>): void {
    const before = this.#counts.get(revision);
    const none = { at: 0, active: 0, waiting: 0, requests: 0, load: 0 };
    const line = { ...none, ...before, ...counts, gateway: this.name, revision };
    this.#counts.set(revision, line);
    for (const response of this.#listeners) response.write(`${JSON.stringify(line)}\n`);
  }

  /** Shows every half a second of this clock that the connections live. */
  beat(clock: Clock): this {
    clock.after(500, () => {
      this.write("\n");
      if (this.#server.listening) this.beat(clock);
    });
    return this;
  }

  /** Whatever is not a line of counts. */
  write(text: string): void {
    for (const response of this.#listeners) response.write(text);
  }

  /** The process ends, and its connections with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
