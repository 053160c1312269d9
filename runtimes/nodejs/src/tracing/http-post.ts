import { connect, isIP, type Socket } from "node:net";
import { HttpAnswer } from "./http-answer.ts";

interface Message {
  contentType: string;
  /** In parts that follow one another. */
  body: readonly Uint8Array[];
  /** For which nothing may move on the connection. */
  timeoutMs: number;
}

interface Outcome {
  /** Undefined when there was no answer. */
  code: number | undefined;
  failure: Error | undefined;
  /** The connection was closed before anything of an answer came. */
  isUnheard: boolean;
}

const limits = { idle: 4, afterStatusMs: 1000 };

/**
 * Sends requests to one server, over connections that it keeps: making one costs as much as sending thousands of spans.
 *
 * `node:http` has a client, but it shares its code with the server: once both have run, V8 can no longer shape that code
 * for the server alone, and each of its answers costs a tenth more. A process that never runs it is smaller, too.
 */
export class HttpPoster {
  readonly #url: URL;
  readonly #idle: Connection[] = [];

  constructor(url: URL) {
    this.#url = url;
  }

  /**
   * Resolves when a status of success has come and nothing holds the body any more, and rejects otherwise. If a
   * server closes a kept connection without a response, the request is sent again, once: a collector may receive the
   * same spans twice.
   */
  async post(message: Message): Promise<void> {
    const known = this.#takeIdle();
    let outcome = known && (await this.#exchange(known, message));
    if (!outcome || (outcome.isUnheard && known))
      outcome = await this.#exchange(new Connection(await open(this.#url)), message);
    const { code, failure } = outcome;
    if (code === undefined)
      throw failure ?? new Error("the server closed the connection without a response");
    if (code >= 300) throw new Error(`the server responded with status ${code}`);
  }

  async #exchange(connection: Connection, message: Message): Promise<Outcome> {
    const outcome = await connection.exchange(headOf(this.#url, message), message);
    if (connection.isOpen && this.#idle.length < limits.idle) this.#idle.push(connection);
    else connection.close();
    return outcome;
  }

  #takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (!connection || connection.isOpen) return connection;
    }
  }
}

/** One request at a time; it stays open between them, and keeps no process alive then. */
class Connection {
  readonly #socket: Socket;
  #answer = new HttpAnswer();
  #failure: Error | undefined;
  #isSilent = false;
  #isWritten = false;
  #settle: ((outcome: Outcome) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("error", (error) => (this.#failure = error));
    socket.on("timeout", () => {
      this.#isSilent = true;
      socket.destroy();
    });
    socket.on("close", () => this.#end());
  }

  get isOpen(): boolean {
    return this.#socket.readyState === "open" && !this.#settle;
  }

  close(): void {
    this.#socket.destroy();
  }

  async exchange(head: string, { body, timeoutMs }: Message): Promise<Outcome> {
    const socket = this.#socket;
    this.#answer = new HttpAnswer();
    this.#isWritten = false;
    const outcome = new Promise<Outcome>((resolve) => (this.#settle = resolve));
    socket.ref().setTimeout(timeoutMs);
    socket.cork();
    socket.write(head);
    for (const part of body) socket.write(part);
    socket.write("", () => {
      this.#isWritten = true;
      if (this.#answer.isWhole) this.#end();
    });
    socket.uncork();
    return await outcome;
  }

  #read(chunk: Buffer): void {
    // Data without a request.
    if (!this.#settle) return void this.#socket.destroy();
    this.#answer.add(chunk);
    if (this.#answer.isWhole && this.#isWritten) this.#end();
    // A server that neither ends its answer nor closes has said what matters.
    else if (this.#answer.code !== undefined) this.#socket.setTimeout(limits.afterStatusMs);
  }

  #end(): void {
    const { code, isEmpty } = this.#answer;
    this.#socket.setTimeout(0).unref();
    const silence = this.#isSilent ? new Error("the server did not respond in time") : undefined;
    const failure = this.#failure ?? silence;
    this.#settle?.({ code, failure, isUnheard: isEmpty && !silence });
    this.#settle = undefined;
  }
}

async function open({ protocol, hostname, port }: URL): Promise<Socket> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol !== "https:") return connect({ host, port: Number(port || 80) });
  const tls = await import("node:tls");
  // TLS has no names that are addresses (RFC 6066 section 3).
  const name = isIP(host) === 0 ? { servername: host } : {};
  return tls.connect({ host, port: Number(port || 443), ...name });
}

function headOf(url: URL, { contentType, body }: Message): string {
  const { host, pathname, search, username, password } = url;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    `content-type: ${contentType}`,
    `content-length: ${body.reduce((sum, { byteLength }) => sum + byteLength, 0)}`,
    ...(username ? [`authorization: Basic ${Buffer.from(credentials).toString("base64")}`] : []),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}
