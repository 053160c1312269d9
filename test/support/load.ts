import { Agent, request } from "node:http";

/** An open loop: requests leave on time, however long answers take. */
export class Load {
  readonly #gateway: URL;
  readonly #host: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly #underway = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  readonly failures: string[] = [];
  readonly seen = new Set<string>();
  answered = 0;

  constructor(gateway: URL, host: string) {
    this.#gateway = gateway;
    this.#host = host;
  }

  start(perSecond: number): void {
    const begin = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - begin) / 1000) * perSecond);
      for (; sent < due; sent++) {
        const one = this.#send(sent % 3 === 0 ? "POST" : "GET").finally(() =>
          this.#underway.delete(one),
        );
        this.#underway.add(one);
      }
    }, 5);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#underway);
    this.#agent.destroy();
  }

  #send(method: string): Promise<void> {
    const { hostname, port } = this.#gateway;
    return new Promise((resolve) => {
      const fail = (why: string) => {
        this.failures.push(`${method}: ${why}`);
        resolve();
      };
      const sent = request(
        {
          host: hostname === "localhost" ? "127.0.0.1" : hostname,
          port,
          method,
          headers: { host: this.#host },
          agent: this.#agent,
          timeout: 20_000,
        },
        (response) => {
          let body = "";
          response.on("data", (chunk: Buffer) => (body += chunk.toString()));
          response.on("error", (error) => fail(error.message));
          response.on("end", () => {
            if (response.statusCode !== 200) return fail(`${response.statusCode} ${body}`);
            this.answered++;
            this.seen.add(body);
            resolve();
          });
        },
      );
      sent.on("timeout", () => sent.destroy(new Error("no answer in 20 s")));
      sent.on("error", (error) => fail(error.message));
      sent.end(method === "POST" ? "body" : undefined);
    });
  }
}
