/** A Git server over smart HTTP: Git's own CGI program behind node:http. */
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo } from "node:net";
import { join } from "node:path";

export interface GitHttpOptions {
  /** Directory with the repositories. */
  root: string;
  /** The address that it listens on; without one, loopback. */
  host?: string;
  /** With it, the server is one of https. */
  tls?: { key: string; cert: string };
  login?: { username: string; password: string };
  /** Whether it knows version 2 of the protocol, as all servers of the last years do. */
  isModern?: boolean;
  /** A plain server of files, which knows nothing of Git. */
  isDumb?: boolean;
}

export class GitHttpServer implements AsyncDisposable {
  /** `GET /shop.git/info/refs`, in order. */
  readonly requests: string[] = [];
  sentBytes = 0;
  /** Answers before Git does; true when it did. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  readonly #options: GitHttpOptions;
  readonly #server: Server;

  static async start(options: GitHttpOptions): Promise<GitHttpServer> {
    const server = new GitHttpServer(options);
    await new Promise<void>((resolve) =>
      server.#server.listen(0, options.host ?? "127.0.0.1", resolve),
    );
    return server;
  }

  private constructor(options: GitHttpOptions) {
    this.#options = options;
    const handle = (request: IncomingMessage, response: ServerResponse) =>
      this.#handle(request, response);
    this.#server = options.tls ? createSecureServer(options.tls, handle) : createServer(handle);
  }

  get origin(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${this.#options.tls ? "https" : "http"}://${address}:${port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.origin);
    this.requests.push(`${request.method} ${url.pathname}`);
    if (this.intercept?.(request, response)) return;
    const { login } = this.#options;
    const wanted = login && `Basic ${btoa(`${login.username}:${login.password}`)}`;
    if (wanted && request.headers.authorization !== wanted) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("who are you?");
      return;
    }
    if (this.#options.isDumb) this.#serveFile(response, url);
    else this.#runBackend(request, response, url);
  }

  #serveFile(response: ServerResponse, url: URL): void {
    const file = join(this.#options.root, url.pathname);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) response.end(readFileSync(file));
    else response.writeHead(404).end();
  }

  #runBackend(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const { root, isModern = true } = this.#options;
    const backend = join(
      execFileSync("git", ["--exec-path"]).toString().trim(),
      "git-http-backend",
    );
    const header = (name: string) => String(request.headers[name] ?? "");
    const child = spawn(backend, {
      env: {
        PATH: process.env["PATH"],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        REQUEST_METHOD: request.method,
        PATH_INFO: decodeURIComponent(url.pathname),
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: header("content-type"),
        HTTP_CONTENT_ENCODING: header("content-encoding"),
        ...(isModern ? { GIT_PROTOCOL: header("git-protocol") } : {}),
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    request.pipe(child.stdin);
    child.stdin.on("error", () => {});
    response.on("close", () => child.kill());
    let head: Buffer | undefined = Buffer.alloc(0);
    child.stdout.on("data", (chunk: Buffer) => {
      this.sentBytes += chunk.length;
      if (!head) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      const headers = new Headers(
        head
          .subarray(0, end)
          .toString()
          .split("\r\n")
          .map((line) => line.split(": ", 2) as [string, string]),
      );
      const status = Number.parseInt(headers.get("status") ?? "200", 10);
      headers.delete("status");
      response.writeHead(status, [...headers].flat());
      response.write(head.subarray(end + 4));
      head = undefined;
    });
    child.stdout.on("end", () => response.end());
  }
}
