import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { Worker } from "node:worker_threads";
import { endChild } from "@spry/test-kit";

/** How a request ended, and how long it took. */
export interface Outcome {
  code: number;
  body: string;
  ms: number;
}

/** An API server in a process of its own, so that its memory is its own; asked as an administrator. */
export class ApiServerProcess {
  readonly directory = mkdtempSync(path.join(tmpdir(), "api-server-"));
  readonly #child: ChildProcess;
  #port = 0;
  #agent: Agent | undefined;

  /** `dataDir` is below `directory`; without one nothing is kept. */
  private constructor(dataDir?: string) {
    issueCertificate(this.directory, "ca", "/CN=ca");
    issueCertificate(this.directory, "server", "/CN=server", "ca");
    issueCertificate(this.directory, "admin", "/O=system:masters/CN=admin", "ca");
    const program = path.join(import.meta.dirname, "api-server-process.ts");
    // As `npm start` runs it.
    const args = ["--max-semi-space-size=16", program, this.directory];
    if (dataDir) args.push(path.join(this.directory, dataDir));
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  }

  static async start(dataDir?: string): Promise<ApiServerProcess> {
    const server = new ApiServerProcess(dataDir);
    const [port] = (await once(server.#child.stdout!, "data")) as [Buffer];
    server.#port = Number(port.toString());
    server.#agent = new Agent({ ...server.credentials, keepAlive: true });
    return server;
  }

  get credentials(): { ca: string; cert: string; key: string } {
    const read = (name: string) => readFileSync(path.join(this.directory, name), "utf8");
    return { ca: read("ca.crt"), cert: read("admin.crt"), key: read("admin.key") };
  }

  get pid(): number {
    return this.#child.pid!;
  }
  /** Resident memory, in MB. */
  get memory(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
  }

  /** What its data directory takes, in bytes. */
  get disk(): number {
    const dir = path.join(this.directory, "data");
    return readdirSync(dir).reduce((sum, name) => sum + statSync(path.join(dir, name)).size, 0);
  }

  ask(method: string, target: string, body?: unknown, type = "application/json"): Promise<Outcome> {
    const start = performance.now();
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          host: "127.0.0.1",
          port: this.#port,
          path: target,
          method,
          agent: this.#agent,
          headers: { "content-type": type },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("end", () =>
            resolve({
              code: response.statusCode ?? 0,
              body: text,
              ms: performance.now() - start,
            }),
          );
          response.on("error", reject);
        },
      );
      outgoing.on("error", reject);
      outgoing.end(
        body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
      );
    });
  }

  /** How long requests of another client take while something is under way: the slowest, in milliseconds. */
  probe(): { stop(): Promise<number> } {
    const worker = new Worker(new URL("api-probe.ts", import.meta.url), {
      workerData: { port: this.#port, pid: this.pid, ...this.credentials },
    });
    const ended = once(worker, "message") as Promise<[number]>;
    return {
      async stop() {
        // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
        worker.postMessage("stop");
        const [slowest] = await ended;
        return slowest;
      },
    };
  }

  /** A bare connection on which a GET has been sent: its reader decides what is read. */
  async get(target: string, session?: Buffer): Promise<TLSSocket> {
    const socket = connect({
      host: "127.0.0.1",
      port: this.#port,
      ...this.credentials,
      ...(session && { session }),
    });
    await once(socket, "secureConnect");
    socket.write(`GET ${target} HTTP/1.1\r\nhost: kubernetes\r\n\r\n`);
    return socket;
  }

  async stop(): Promise<void> {
    this.#agent?.destroy();
    await endChild(this.#child);
    rmSync(this.directory, { recursive: true });
  }
}

function issueCertificate(
  directory: string,
  name: string,
  subject: string,
  signedBy?: string,
): void {
  const file = (each: string) => path.join(directory, each);
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  args.push("-days", "2", "-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1");
  args.push("-keyout", file(`${name}.key`), "-out", file(`${name}.crt`));
  if (signedBy) args.push("-CA", file(`${signedBy}.crt`), "-CAkey", file(`${signedBy}.key`));
  execFileSync("openssl", args, { stdio: "ignore" });
}
