import { createServer, type Server, type Socket } from "node:net";
import { type Clock, type Logger, messageOf, type ObjectKey } from "@spry/kube";

export interface EntranceOptions {
  host: string;
  port: number;
  clock: Clock;
  log: Logger;
  accept: (socket: Socket, entrance: Entrance) => void;
}

const firstRetryMs = 250;
const maxRetryMs = 30_000;
/** Callers may learn late that they should go elsewhere. */
const leaveMs = 5_000;
const keepAliveProbeMs = 60_000;

/** A slice that names an entrance. */
export interface User {
  service: ObjectKey;
  /** When the slice was created; where two name the same address, the older one has it. */
  since: string;
}

/** An address and port at which one Service is called. */
export class Entrance {
  readonly #options: EntranceOptions;
  readonly #server: Server;
  readonly #users = new Map<ObjectKey, User>();
  #service: ObjectKey = "";
  #retryMs = firstRetryMs;
  #isListening = false;
  #cancel = () => {};
  #closed: Promise<void> | undefined;

  constructor(options: EntranceOptions) {
    this.#options = options;
    // As an HTTP server creates its own.
    this.#server = createServer(
      {
        allowHalfOpen: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: keepAliveProbeMs,
      },
      (socket) => options.accept(socket, this),
    );
    this.#server.on("error", (error) => this.#failed(error));
  }

  /** `namespace/name` of the Service that is called here. */
  get service(): ObjectKey {
    return this.#service;
  }
  /** Whether callers should go elsewhere: no slice names it any more. */
  get isLeaving(): boolean {
    return this.#users.size === 0;
  }

  use(slice: ObjectKey, user: User): void {
    if (this.isLeaving) {
      this.#cancel();
      this.#listen();
    }
    this.#users.set(slice, user);
    this.#settle();
    if (this.#users.size === 1) return;
    const { host, port, log } = this.#options;
    const fields = { host, port, service: user.service, used: this.#service };
    log.warn(fields, "two Services have the same address");
  }

  /** The slice no longer names it. Without any, it is closed after a while; `closed` is called then. */
  leave(slice: ObjectKey, closed: () => void): void {
    this.#users.delete(slice);
    if (this.#users.size > 0) return this.#settle();
    this.#cancel();
    this.#cancel = this.#options.clock.after(leaveMs, () => {
      closed();
      void this.close();
    });
  }

  /** Resolves when its connections have ended. */
  close(): Promise<void> {
    this.#cancel();
    this.#closed ??= new Promise((resolve) => this.#server.close(() => resolve()));
    return this.#closed;
  }

  #settle(): void {
    const users = [...this.#users.values()];
    const oldest = users.reduce((first, user) => (user.since < first.since ? user : first));
    this.#service = oldest.service;
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { host, port } = this.#options;
    this.#server.listen({ host, port });
  }

  #failed(error: Error): void {
    this.#isListening = false;
    const { host, port, clock, log } = this.#options;
    const retryMs = this.#retryMs;
    this.#retryMs = Math.min(retryMs * 2, maxRetryMs);
    const fields = { host, port, service: this.#service, error: messageOf(error), retryMs };
    log.warn(fields, "listening for callers in the cluster failed, trying again");
    if (this.isLeaving || this.#closed) return;
    this.#cancel = clock.after(retryMs, () => this.#listen());
  }
}
