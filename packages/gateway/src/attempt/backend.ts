import { type Clock } from "@spry/kube";
import Client from "undici/lib/dispatcher/client.js";
import { createConnector } from "./connect.ts";

/** Of the heads of requests and of responses: what Functions themselves accept (runtime contract, 6.5). */
export const maxHeadBytes = 32 * 1024;
/** Used when the Pod does not announce how long it keeps idle connections; Node.js servers do. */
const keepAliveMs = 4_000;
const maxIdleConnections = 256;
/** A Pod that refused a connection is not used for this long. */
const suspicionMs = 100;
/** While a Pod starts: its address may be published a moment before its socket is open. */
const wakingSuspicionMs = { from: 5, to: 25 };
const connectH1 = createConnector(false);
const connectH2c = createConnector(true);

export interface BackendSettings {
  /** Until the first byte of a response, unless a request brings a limit of its own. */
  upstreamTimeoutMs: number;
  /** Without a byte of a response's body. */
  idleTimeoutMs: number;
}

/** One connection to a Pod; it carries one request at a time and is opened again when needed. */
export class Connection {
  readonly client: InstanceType<typeof Client>;

  constructor(
    origin: string,
    settings: BackendSettings,
    isH2c: boolean,
    onDisconnect: (self: Connection) => void,
  ) {
    this.client = new Client(origin, {
      pipelining: 1,
      allowH2: isH2c,
      ...(isH2c ? { h2Options: { useH2c: true } } : {}),
      maxHeaderSize: maxHeadBytes,
      keepAliveTimeout: keepAliveMs,
      headersTimeout: settings.upstreamTimeoutMs,
      bodyTimeout: settings.idleTimeoutMs,
      connect: isH2c ? connectH2c : connectH1,
    });
    this.client.on("disconnect", () => onDisconnect(this));
  }
}

/**
 * One Pod, by its address, with connections that are kept alive. The most recently used one is taken first, so that
 * those which are not needed reach their idle timeout.
 */
export class Backend {
  readonly address: string;
  readonly #settings: BackendSettings;
  readonly #clock: Clock;
  readonly #isH2c: boolean;
  readonly isPeer: boolean;
  readonly #idle: Connection[] = [];
  #suspectUntil = 0;
  #hasResponded = false;
  #retired = false;
  /** Requests that it has been given and that have not ended; counted by its destination. */
  active = 0;

  /** `isH2c`: it speaks HTTP/2 over clear text, with prior knowledge; `isPeer`: it is a gateway, which has a Pod for the request. */
  constructor(
    address: string,
    settings: BackendSettings,
    clock: Clock,
    { isH2c = false, isPeer = false } = {},
  ) {
    this.#isH2c = isH2c;
    this.isPeer = isPeer;
    this.address = address;
    this.#settings = settings;
    this.#clock = clock;
  }

  get isH2c(): boolean {
    return this.#isH2c;
  }
  /** No longer among its destination's addresses: finishes what it has, and gets nothing new. */
  get retired(): boolean {
    return this.#retired;
  }
  /** When it may be tried again, in milliseconds of the clock; 0 when it has never refused a connection. */
  get suspectUntil(): number {
    return this.#suspectUntil;
  }
  get isSuspect(): boolean {
    return this.#suspectUntil > 0 && this.#clock.elapsed() < this.#suspectUntil;
  }
  /** Whether it has ever responded to a request. */
  get hasResponded(): boolean {
    return this.#hasResponded;
  }

  responded(): void {
    this.#hasResponded = true;
  }

  /** It refused a connection. A Pod that has never responded is probably about to. */
  suspect(): void {
    const { from, to } = wakingSuspicionMs;
    const pauseMs = this.#hasResponded ? suspicionMs : from + Math.random() * (to - from);
    this.#suspectUntil = this.#clock.elapsed() + pauseMs;
  }

  /** Every connection taken is given back by `release`. */
  take(): Connection {
    return (
      this.#idle.pop() ??
      new Connection(`http://${this.address}`, this.#settings, this.#isH2c, (self) =>
        this.#forget(self),
      )
    );
  }

  release(connection: Connection, reusable: boolean): void {
    if (reusable && !this.#retired && this.#idle.length < maxIdleConnections) {
      this.#idle.push(connection);
    } else {
      closeQuietly(connection);
    }
  }

  retire(): void {
    this.#retired = true;
    for (const connection of this.#idle.splice(0)) closeQuietly(connection);
  }

  /** It is among its destination's addresses again, with the requests that it still has. */
  revive(): void {
    this.#retired = false;
  }

  /** An idle connection that the Pod or its timeout has closed is not worth keeping. */
  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    closeQuietly(connection);
  }
}

/** After the request that it still carries, if any. */
function closeQuietly({ client }: Connection): void {
  if (!client.closed && !client.destroyed) client.close(() => {});
}
