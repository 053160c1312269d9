import { type IncomingMessage } from "node:http";
import { type Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { messageOf, type Transport, transportOrigin, type WebSocketAccess } from "@spry/kube";
import { callTargetProblem } from "./call.ts";
import { assertReadable } from "./function-metrics.ts";
import { FunctionSocket, proxyPath, throughGateway } from "./function-socket.ts";
import { apiPathProblem } from "./proxy.ts";
import { type ClientMessage, type ServerMessage, socketClosed } from "./tab-protocol.ts";

export interface TabSocketsOptions {
  /** Undefined for a token that is not valid; throws where that cannot be found out. */
  transportFor(token: string): Promise<Transport | undefined>;
  /** Whether this server has issued the token. */
  isOwn(token: string): boolean;
  /** When such a login expires, in milliseconds since 1970. */
  endOf(token: string): number | undefined;
  /** Where Functions' WebSockets are; without one they are opened by way of the API server. */
  gateway: URL | undefined;
  /** For those, as the token's user; undefined where there are none. */
  socketAccessFor(token: string, path: string): Promise<WebSocketAccess | undefined>;
  closing: AbortSignal;
}

/** Tabs with a login by link, and with any other token: the latter cannot take the place of the former. */
const maxTabs = 100;
const maxForeignTabs = 50;
/** Connections that have not logged in yet; the oldest is closed for the next. */
const maxWaiting = 100;
const maxStreams = 200;
/** The size of one message from the browser: a path, or a token. */
const maxMessageBytes = 16 * 1024;
const loginTimeoutMs = 10_000;
const pingMs = 30_000;
/** Reading of a stream continues when the browser has received most of what was sent. */
const maxUnsentBytes = 4 * 1024 ** 2;
const sendPauseMs = 20;
/** A browser that receives nothing for this long is disconnected. */
const stalledMs = 60_000;

/** One WebSocket for each tab carries all of its watches and logs: a browser opens only six connections per host. */
export class TabSockets {
  readonly #options: TabSocketsOptions;
  readonly #waiting = new Set<WebSocket>();
  readonly #own = new Set<WebSocket>();
  readonly #foreign = new Set<WebSocket>();
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
  });

  constructor(options: TabSocketsOptions) {
    this.#options = options;
    const end = () => {
      for (const socket of this.#server.clients) socket.terminate();
    };
    options.closing.addEventListener("abort", end, { once: true });
  }

  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, socket, head, (tab) => {
      const [oldest] = this.#waiting;
      if (oldest && this.#waiting.size >= maxWaiting) {
        this.#waiting.delete(oldest);
        oldest.close(socketClosed.busy, "no login was received in time");
      }
      this.#waiting.add(tab);
      tab.once("close", () => {
        for (const tabs of [this.#waiting, this.#own, this.#foreign]) tabs.delete(tab);
      });
      Tab.serve(tab, { ...this.#options, admit: (token) => this.#admit(tab, token) });
    });
  }

  /** Returns false when too many tabs are open. */
  #admit(tab: WebSocket, token: string): boolean {
    const isOwn = this.#options.isOwn(token);
    const [tabs, others] = isOwn ? [this.#own, this.#foreign] : [this.#foreign, this.#own];
    if (!tabs.has(tab) && tabs.size >= (isOwn ? maxTabs : maxForeignTabs)) return false;
    this.#waiting.delete(tab);
    others.delete(tab);
    tabs.add(tab);
    return true;
  }
}

interface TabOptions extends TabSocketsOptions {
  /** Whether there is room for a tab of this login. */
  admit(token: string): boolean;
}

class Tab {
  readonly #socket: WebSocket;
  readonly #options: TabOptions;
  readonly #streams = new Map<number, AbortController>();
  readonly #conversations = new Map<number, FunctionSocket>();
  #transport: Transport | undefined;
  #token = "";
  #isAlive = true;
  #expiry: NodeJS.Timeout | undefined;

  /** Until the socket is closed. */
  static serve(socket: WebSocket, options: TabOptions): Tab {
    return new Tab(socket, options);
  }

  private constructor(socket: WebSocket, options: TabOptions) {
    this.#socket = socket;
    this.#options = options;
    const login = setTimeout(
      () => socket.close(socketClosed.login, "no login was received in time"),
      loginTimeoutMs,
    );
    const ping = setInterval(() => {
      if (!this.#isAlive) return socket.terminate();
      this.#isAlive = false;
      socket.ping();
    }, pingMs);
    socket.on("pong", () => (this.#isAlive = true));
    socket.on("error", () => socket.terminate());
    socket.on("close", () => {
      clearTimeout(login);
      clearTimeout(this.#expiry);
      clearInterval(ping);
      for (const stream of this.#streams.values()) stream.abort();
    });
    let work = Promise.resolve();
    socket.on("message", (data) => {
      const message = messageIn(data);
      if (!message) return socket.close(socketClosed.protocol, "not a message");
      if (message.type === "login") {
        // Later messages wait until the user is known.
        socket.pause();
        const before = work;
        const logIn = async () => {
          await before;
          await this.#logIn(message.token);
          if (this.#transport) clearTimeout(login);
          socket.resume();
        };
        work = logIn();
      } else void work.then(() => this.#do(message));
    });
  }

  #do(message: Exclude<ClientMessage, { type: "login" }>): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (!this.#transport)
      this.#socket.close(socketClosed.login, "the first message must be the login");
    else if (message.type === "close") this.#close(message.id);
    else if (message.type === "say") this.#say(message.id, message.text);
    else {
      const transport = this.#transport;
      this.#open(message, (signal) =>
        message.type === "open"
          ? this.#carry(message.id, message.path, transport, signal)
          : this.#converse(message, transport, signal),
      );
    }
  }

  #close(id: number): void {
    const conversation = this.#conversations.get(id);
    if (conversation) conversation.close();
    else this.#streams.get(id)?.abort();
  }

  #say(id: number, text: string): void {
    const conversation = this.#conversations.get(id);
    if (conversation?.send(text) !== false) return;
    this.#send({ type: "end", id, error: "the Function does not receive what is sent to it" });
    this.#streams.get(id)?.abort();
  }

  /** Also on an open connection, with a login that expires later. */
  async #logIn(token: string): Promise<void> {
    try {
      this.#transport = await this.#options.transportFor(token);
      this.#token = token;
    } catch (error) {
      return this.#socket.close(socketClosed.busy, messageOf(error));
    }
    clearTimeout(this.#expiry);
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (!this.#transport) return this.#socket.close(socketClosed.login, "not a valid login");
    if (!this.#options.admit(token)) return this.#socket.close(socketClosed.busy, "too many tabs");
    const end = this.#options.endOf(token);
    if (end !== undefined) {
      this.#expiry = setTimeout(
        () => this.#socket.close(socketClosed.login, "the login has expired"),
        end - Date.now(),
      );
    }
    this.#send({ type: "welcome" });
  }

  #open(message: Opening, work: (signal: AbortSignal) => Promise<void>): void {
    const { id } = message;
    const problem =
      (message.type === "open" ? apiPathProblem(message.path) : callTargetProblem(message)) ??
      (this.#streams.has(id) ? "this stream is open already" : undefined) ??
      (this.#streams.size >= maxStreams ? `more than ${maxStreams} streams` : undefined);
    if (problem !== undefined) return this.#send({ type: "end", id, error: problem });
    const stream = new AbortController();
    this.#streams.set(id, stream);
    void work(stream.signal)
      .then(
        () => this.#send({ type: "end", id }),
        (error: unknown) => {
          if (!stream.signal.aborted) this.#send({ type: "end", id, error: messageOf(error) });
        },
      )
      .finally(() => this.#streams.delete(id));
  }

  async #converse(
    { id, ...target }: Extract<Opening, { type: "connect" }>,
    transport: Transport,
    signal: AbortSignal,
  ): Promise<void> {
    const { gateway } = this.#options;
    const token = this.#token;
    await assertReadable(target, transport, signal);
    const access = gateway
      ? throughGateway(gateway, target)
      : await this.#options.socketAccessFor(token, proxyPath(target));
    if (!access) throw new Error("this dashboard does not reach WebSockets of Functions");
    const conversation = new FunctionSocket({
      access,
      onOpen: () => this.#send({ type: "head", id, status: 101, contentType: "" }),
      onMessage: (message) => {
        this.#send({ type: "message", id, ...message });
        return this.#drained(signal);
      },
      signal,
    });
    this.#conversations.set(id, conversation);
    await conversation.closed.finally(() => this.#conversations.delete(id));
  }

  async #carry(id: number, path: string, transport: Transport, signal: AbortSignal): Promise<void> {
    const headers = { accept: "application/json, */*" };
    const answer = await transport(new Request(transportOrigin + path, { headers, signal }));
    this.#send({
      type: "head",
      id,
      status: answer.status,
      contentType: answer.headers.get("content-type") ?? "",
    });
    if (!answer.body) return;
    const decoder = new TextDecoder();
    for await (const chunk of answer.body) {
      const text = decoder.decode(chunk, { stream: true });
      if (text !== "") this.#send({ type: "data", id, text });
      await this.#drained(signal);
    }
  }

  /** Stops reading for a browser that does not keep up. */
  async #drained(signal: AbortSignal): Promise<void> {
    const deadline = Date.now() + stalledMs;
    while (this.#socket.bufferedAmount > maxUnsentBytes && !signal.aborted) {
      if (Date.now() > deadline) return this.#socket.terminate();
      await new Promise((resolve) => setTimeout(resolve, sendPauseMs));
    }
  }

  #send(message: ServerMessage): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}

type Opening = Extract<ClientMessage, { type: "open" | "connect" }>;

function messageIn(data: RawData): ClientMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse((data as Buffer).toString("utf8"));
  } catch {
    return undefined;
  }
  const { type, token, id, path, text, namespace, name } = (value ?? {}) as Record<string, unknown>;
  if (type === "login" && typeof token === "string") return { type, token };
  if (typeof id !== "number" || !Number.isSafeInteger(id)) return undefined;
  if (type === "close") return { type, id };
  if (type === "say") return typeof text === "string" ? { type, id, text } : undefined;
  if (type === "connect" && typeof namespace === "string" && typeof name === "string")
    return typeof path === "string" ? { type, id, namespace, name, path } : undefined;
  return type === "open" && typeof path === "string" ? { type, id, path } : undefined;
}
