import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription,
} from "@nats-io/transport-node";

/** How long a request for messages is known to the server, and how often it says that it still is. */
const expiresMs = 30_000;
const heartbeatMs = 5_000;
/** Without a sign of it. */
const lostMs = 2 * heartbeatMs + 2_000;
const againMs = 250;
const nanos = 1_000_000;

/**
 * Asks a consumer's server for messages, as many as are wanted and no more: what it sends is counted as handed out. A
 * request that is lost, with its server or the connection, is made again.
 */
export class Puller {
  readonly #connection: NatsConnection;
  readonly #subject: string;
  readonly #receive: (message: Msg) => void;
  #subscription: Subscription | undefined;
  #inbox = "";
  /** Asked for, and not sent yet. */
  #outstanding = 0;
  #wanted: { count: number; maxBytes: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connection: NatsConnection, subject: string, receive: (message: Msg) => void) {
    this.#connection = connection;
    this.#subject = subject;
    this.#receive = receive;
  }

  /** So many are wanted in all; those that have been asked for already are among them. */
  want(count: number, maxBytes: number): void {
    this.#wanted = { count, maxBytes };
    this.#ask();
  }

  /** What has been asked for may still come. */
  wantNone(): void {
    this.#wanted = undefined;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#subscription?.unsubscribe();
  }

  #ask(): void {
    if (this.#isClosed || !this.#wanted || this.#connection.isClosed()) return;
    const missing = this.#wanted.count - this.#outstanding;
    if (missing <= 0) return;
    if (!this.#subscription) {
      this.#inbox = createInbox();
      this.#subscription = this.#connection.subscribe(this.#inbox, {
        callback: (error, message) => {
          if (!error) this.#got(message);
        },
      });
    }
    this.#outstanding += missing;
    const request = {
      batch: missing,
      max_bytes: this.#wanted.maxBytes,
      expires: expiresMs * nanos,
      idle_heartbeat: heartbeatMs * nanos,
    };
    this.#connection.publish(this.#subject, JSON.stringify(request), { reply: this.#inbox });
    this.#watch(lostMs);
  }

  #watch(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#startAgain(), ms);
    this.#timer.unref();
  }

  /** What was asked for before no longer counts; if it is sent after all, there is no reader, and it is sent again later. */
  #startAgain(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#outstanding = 0;
    this.#ask();
  }

  #got(message: Msg): void {
    const code = message.data.length === 0 ? (message.headers?.code ?? 0) : 0;
    if (code === 0) {
      this.#outstanding = Math.max(0, this.#outstanding - 1);
      this.#watch(lostMs);
      this.#receive(message);
      return;
    }
    if (code === 100) {
      this.#watch(lostMs);
      return;
    }
    const left = Number(message.headers?.get("Nats-Pending-Messages") || Number.NaN);
    if (Number.isNaN(left)) {
      // It knows nothing of the request: another one leads, or the consumer is being made again.
      this.#watch(againMs);
      return;
    }
    this.#outstanding = Math.max(0, this.#outstanding - left);
    this.#ask();
  }
}
