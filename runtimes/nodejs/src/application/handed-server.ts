/**
 * Programs that start their own server, as they do on any machine: `app.listen(process.env.PORT)`. While a Function's code
 * loads, a server of `node:http` that is to listen gets no port: the requests of the runtime's own server are handed to it.
 */
import { Server } from "node:http";
import { type AddressInfo } from "node:net";

/** How long a program without exports may take until it listens, as long as it has something to wait for. */
const patienceMs = 30_000;

type Listen = typeof Server.prototype.listen;
type Callback = () => void;

export class HandedServer {
  readonly #port: number;
  /** The first, with what its `listen` was called with. */
  #first: { server: Server; args: unknown[] } | undefined;
  #onFirst = () => {};

  /** `port` is the one on which the runtime will listen: what the program believes to have. */
  constructor(port: number) {
    this.#port = port;
    const take = (server: Server, args: unknown[]) => this.#take(server, args);
    const listen: (...args: unknown[]) => Server = function (this: Server, ...args) {
      return take(this, args);
    };
    Server.prototype.listen = listen as Listen;
  }

  /** Servers listen as ever. */
  release(): void {
    delete (Server.prototype as Partial<Server>).listen;
  }

  /** The code exports a handler, and its server is for something else: it gets the port that it wanted. */
  giveBack(): void {
    this.release();
    if (!this.#first) return;
    const { server, args } = this.#first;
    for (const name of ["address", "close", "listening"]) Reflect.deleteProperty(server, name);
    server.listen(...(args.filter((each) => typeof each !== "function") as []));
  }

  /** The program's server, if it listens by now. */
  taken(): Server | undefined {
    this.release();
    return this.#first?.server;
  }

  /**
   * The program's server, once it listens: a program of which nothing is exported may connect to its database first. Undefined
   * when it has nothing left to wait for, or has taken too long.
   */
  async awaited(): Promise<Server | undefined> {
    await new Promise<void>((resolve) => {
      if (this.#first) return resolve();
      const timer = setTimeout(resolve, patienceMs).unref();
      const end = () => {
        clearTimeout(timer);
        process.off("beforeExit", end);
        resolve();
      };
      this.#onFirst = end;
      process.on("beforeExit", end);
    });
    return this.taken();
  }

  #take(server: Server, args: unknown[]): Server {
    const callback = args.find((each) => typeof each === "function") as Callback | undefined;
    if (callback) server.once("listening", callback);
    this.#pretend(server);
    this.#first ??= { server, args };
    process.nextTick(() => {
      server.emit("listening");
      this.#onFirst();
    });
    return server;
  }

  /** What a program asks a server that listens. */
  #pretend(server: Server): void {
    const address = (): AddressInfo => ({ address: "::", family: "IPv6", port: this.#port });
    const close = (done?: Callback) => {
      process.nextTick(() => {
        done?.();
        server.emit("close");
      });
      return server;
    };
    for (const [name, value] of Object.entries({ address, close, listening: true }))
      Object.defineProperty(server, name, { value, configurable: true, writable: true });
  }
}
