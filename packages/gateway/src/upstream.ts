import { type Clock } from "@spry/kube";
import Client from "undici/lib/dispatcher/client.js";

export interface UpstreamSettings {
  /** Until the first byte of the answer. */
  upstreamTimeoutMs: number;
  /** Without a byte of the answer's body. */
  idleTimeoutMs: number;
  /** Requests that one Pod is given at a time; more are refused. */
  maxConcurrency: number;
}

/** Of the heads of requests and of answers: what Functions themselves take (runtime contract, 6.5). */
export const maxHeadBytes = 32 * 1024;
const connectTimeoutMs = 2_000;
/** Used when the Pod does not say how long it keeps idle connections; Node.js servers do say. */
const keepAliveMs = 4_000;
const maxIdleConnections = 256;
/** After a refused connection the Pod is left alone for this long. */
const suspicionMs = 100;

/** One connection to a Pod; it carries one request at a time and is opened again when need be. */
export class Connection {
  readonly client: InstanceType<typeof Client>;
  /** Requests that the present socket has carried; a socket that has carried some may be stale. */
  carried = 0;

  constructor(
    origin: string,
    settings: UpstreamSettings,
    onDisconnect: (self: Connection) => void,
  ) {
    this.client = new Client(origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: maxHeadBytes,
      connectTimeout: connectTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      headersTimeout: settings.upstreamTimeoutMs,
      bodyTimeout: settings.idleTimeoutMs,
      // Tunnels end in one direction at a time.
      connect: { allowHalfOpen: true },
    });
    this.client.on("connect", () => (this.carried = 0));
    this.client.on("disconnect", () => onDisconnect(this));
  }
}

/**
 * One address of a Function, with connections that are kept alive. The most recently used one is
 * taken first, so that those which are not needed run into their timeout.
 */
export class Upstream {
  readonly address: string;
  readonly #settings: UpstreamSettings;
  readonly #clock: Clock;
  readonly #idle: Connection[] = [];
  #suspectUntil = 0;
  #retired = false;
  active = 0;

  constructor(address: string, settings: UpstreamSettings, clock: Clock) {
    this.address = address;
    this.#settings = settings;
    this.#clock = clock;
  }

  /** No longer among the Function's addresses: finishes what it has, and gets nothing new. */
  get retired(): boolean {
    return this.#retired;
  }
  get isSuspect(): boolean {
    return this.#suspectUntil > 0 && this.#clock.now() < this.#suspectUntil;
  }
  get isFull(): boolean {
    return this.active >= this.#settings.maxConcurrency;
  }

  suspect(): void {
    this.#suspectUntil = this.#clock.now() + suspicionMs;
  }

  /** Every connection taken is given back by `release`. */
  take(): Connection {
    this.active++;
    return (
      this.#idle.pop() ??
      new Connection(`http://${this.address}`, this.#settings, (self) => this.#forget(self))
    );
  }

  release(connection: Connection, reusable: boolean): void {
    this.active--;
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
