/** Set-up for tests of what comes over TLS: certificates of several users. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request, type RequestOptions } from "node:https";
import { type ClientRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ApiServer, type ApiServerOptions, createApiServer, type Listener } from "../index.ts";

export interface Answer {
  code: number;
  headers: IncomingMessage["headers"];
  text: string;
}

/** A server that administrators of these names have certificates for. */
export class ServerForUsers {
  readonly #directory = mkdtempSync(path.join(tmpdir(), "spry-users-"));
  readonly #agents: Agent[] = [];
  #server: ApiServer | undefined;
  #listener: Listener | undefined;

  static async start(options: Partial<ApiServerOptions> = {}): Promise<ServerForUsers> {
    const started = new ServerForUsers();
    started.#certificate("ca", "/CN=ca");
    started.#certificate("server", "/CN=server");
    started.#server = await createApiServer({ dataDir: ":memory:", ...options });
    const [cert, key] = [started.#read("server.crt"), started.#read("server.key")];
    const clientCa = started.#read("ca.crt");
    started.#listener = await started.#server.listen({
      host: "127.0.0.1",
      port: 0,
      cert,
      key,
      clientCa,
    });
    return started;
  }

  get server(): ApiServer {
    if (!this.#server) throw new Error("the server has not been started");
    return this.#server;
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Connections of a user with all rights. */
  user(name: string): Agent {
    this.#certificate(name, `/O=system:masters/CN=${name}`);
    const [ca, cert, key] = [
      this.#read("ca.crt"),
      this.#read(`${name}.crt`),
      this.#read(`${name}.key`),
    ];
    const agent = new Agent({ keepAlive: true, maxSockets: 2000, ca, cert, key });
    this.#agents.push(agent);
    return agent;
  }

  /** A request that has not been ended. */
  open(agent: Agent, options: RequestOptions): ClientRequest {
    return request({ host: "127.0.0.1", port: this.port, agent, ...options });
  }

  ask(agent: Agent, options: RequestOptions, body?: string | Buffer): Promise<Answer> {
    const outgoing = this.open(agent, options);
    const answer = answerOf(outgoing);
    outgoing.end(body);
    return answer;
  }

  askBytes(agent: Agent, options: RequestOptions): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const outgoing = this.open(agent, options);
      outgoing.on("error", reject);
      outgoing.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve(Buffer.concat(chunks)));
      });
      outgoing.end();
    });
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents) agent.destroy();
    await this.#server?.close();
    rmSync(this.#directory, { recursive: true });
  }

  #read(name: string): string {
    return readFileSync(path.join(this.#directory, name), "utf8");
  }

  #certificate(name: string, subject: string): void {
    const file = (each: string) => path.join(this.#directory, each);
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    const names = ["-days", "2", "-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", file(`${name}.key`), "-out", file(`${name}.crt`)];
    const authority = name === "ca" ? [] : ["-CA", file("ca.crt"), "-CAkey", file("ca.key")];
    execFileSync("openssl", ["req", "-x509", ...curve, ...names, ...files, ...authority], {
      stdio: "ignore",
    });
  }
}

export function answerOf(outgoing: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () =>
        resolve({ code: response.statusCode ?? 0, headers: response.headers, text }),
      );
      response.on("error", reject);
    });
  });
}
