import { Agent, type AgentOptions, request } from "node:https";

/** PEM. */
export interface ClientTls {
  ca: string | undefined;
  cert: string | undefined;
  key: string | undefined;
}

/** The cheapest client there is, so that the server is what is measured: kept connections, bodies uninterpreted. */
export class ApiClient {
  readonly #server: URL;
  readonly #agent: Agent;

  constructor(server: string, tls: ClientTls) {
    this.#server = new URL(server);
    this.#agent = new Agent({ ...(tls as AgentOptions), keepAlive: true, maxSockets: 512 });
  }

  /** The answer's body; throws unless its status is 2xx. */
  send(method: string, path: string, body?: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const call = request(
        this.#options(
          method,
          path,
          body === undefined ? {} : { "content-type": contentType(method) },
        ),
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => {
            const answer = Buffer.concat(chunks);
            const status = response.statusCode ?? 0;
            if (status >= 200 && status < 300) resolve(answer);
            else
              reject(new Error(`${method} ${path}: ${status} ${answer.toString().slice(0, 300)}`));
          });
          response.on("error", reject);
        },
      );
      call.on("error", reject);
      call.end(body);
    });
  }

  /** Follows a watch; resolves, when it has begun, with how to end it. Calls back for every line. */
  watch(path: string, onLine: (line: string) => void): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const call = request(this.#options("GET", path, {}), (response) => {
        let rest = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          const lines = (rest + chunk).split("\n");
          rest = lines.pop() ?? "";
          lines.forEach(onLine);
        });
        response.on("error", () => {});
        resolve(() => call.destroy());
      });
      call.on("error", reject);
      call.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #options(method: string, path: string, headers: Record<string, string>) {
    const { hostname, port } = this.#server;
    const accept = "application/json";
    return { method, hostname, port, path, agent: this.#agent, headers: { accept, ...headers } };
  }
}

const contentType = (method: string) =>
  method === "PATCH" ? "application/merge-patch+json" : "application/json";

/** Runs `count` jobs, `width` at a time; jobs per second. */
export async function throughput(
  count: number,
  width: number,
  job: (index: number) => Promise<unknown>,
): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < count) await job(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return (count * 1000) / (performance.now() - begin);
}
