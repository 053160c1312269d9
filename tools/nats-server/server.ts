/** nats-server with JetStream, for tests: one, or several of a cluster. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { endChild, freePort, hasEnded, patience } from "../../test/kit/index.ts";
import { natsProgram } from "./binary.ts";

export interface NatsServer {
  readonly url: string;
  readonly directory: string;
  /** As a power cut of the process: what it has not written is lost. */
  kill(): Promise<void>;
  /** With the same files, at the same port. */
  start(): Promise<void>;
}

export interface NatsOptions {
  maxStore?: string;
  /** What clients have to show, in the words of the servers' configuration: `token: secret`. */
  authorization?: string;
}

/** As many servers as there are to be; each write is synced to disk before it is acknowledged. */
export async function startNatsServers(
  count: number,
  { maxStore = "100GB", authorization }: NatsOptions = {},
): Promise<NatsServer[]> {
  const ports = await Promise.all(
    Array.from({ length: count }, async () => ({
      client: await freePort(),
      route: await freePort(),
      monitor: await freePort(),
    })),
  );
  const routes = ports.map(({ route }) => `nats://127.0.0.1:${route}`).join(", ");
  const servers = ports.map(({ client, route, monitor }, at) => {
    const directory = mkdtempSync(path.join(tmpdir(), "nats-"));
    const file = path.join(directory, "nats.conf");
    const cluster = `cluster { name: test, listen: "127.0.0.1:${route}", routes: [${routes}] }`;
    writeFileSync(
      file,
      `server_name: n${at}
listen: "127.0.0.1:${client}"
http: "127.0.0.1:${monitor}"
max_payload: 4MB
${authorization === undefined ? "" : `authorization { ${authorization} }`}
jetstream { store_dir: "${directory}", max_file_store: ${maxStore}, sync_interval: always }
${count > 1 ? cluster : ""}
`,
    );
    return new Server(file, directory, client, monitor);
  });
  await Promise.all(servers.map((server) => server.start()));
  return servers;
}

class Server implements NatsServer {
  readonly url: string;
  readonly directory: string;
  readonly #file: string;
  readonly #monitor: number;
  #process: ChildProcess | undefined;
  #log = "";

  constructor(file: string, directory: string, port: number, monitor: number) {
    this.#file = file;
    this.directory = directory;
    this.url = `nats://127.0.0.1:${port}`;
    this.#monitor = monitor;
  }

  async start(): Promise<void> {
    const child = spawn(natsProgram(), ["-c", this.#file], { stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.on(
      "data",
      (text: Buffer) => (this.#log = `${this.#log}${text.toString("utf8")}`.slice(-8_192)),
    );
    this.#process = child;
    const deadline = performance.now() + patience.condition;
    for (;;) {
      const ready = await fetch(`http://127.0.0.1:${this.#monitor}/healthz`)
        .then((response) => response.ok)
        .catch(() => false);
      if (ready) return;
      if (hasEnded(child) || performance.now() > deadline)
        throw new Error(`nats-server is not ready:\n${this.#log}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async kill(): Promise<void> {
    if (this.#process) await endChild(this.#process);
  }
}
