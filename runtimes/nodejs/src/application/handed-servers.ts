/**
 * Programs that start their own server, as they do on any machine: `app.listen(process.env.PORT)`. While a Function's code
 * loads, a server of `node:http` that is to listen gets no port: the requests of the runtime's own server are handed to it.
 */
import { Server } from "node:http";
import { type AddressInfo } from "node:net";
import { logLine } from "../log.ts";
import { loaded } from "../long-load.ts";
import { PortReads } from "./port-reads.ts";

type Listen = typeof Server.prototype.listen;
type Callback = () => void;

/** A server with what its `listen` was called with. */
interface Handed {
  server: Server;
  args: unknown[];
}

export class HandedServers {
  readonly #port: number;
  readonly #portReads = new PortReads();
  #all: Handed[] = [];
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

  /** The one that asked for the Function's own port, by `PORT` or as 8080. */
  get forRequests(): Server | undefined {
    return this.#all.find((each) => this.#isForRequests(each))?.server;
  }

  get first(): Server | undefined {
    return this.#all[0]?.server;
  }

  /** The one that calls this listener for its requests. */
  around(listener: unknown): Server | undefined {
    const calls = ({ server }: Handed) =>
      server.listeners("request").includes(listener as Callback);
    return this.#all.find(calls)?.server;
  }

  /**
   * From now on servers listen as ever. Those but `served` get the ports that they wanted, unless it is the Function's own; in a further
   * thread (`isFirst` false) none: the first has them.
   */
  release(served: Server | undefined, isReported: boolean, isFirst = true): void {
    this.#portReads.stop();
    delete (Server.prototype as Partial<Server>).listen;
    for (const each of this.#all.filter(({ server }) => server !== served)) {
      for (const name of ["address", "close", "listening"])
        Reflect.deleteProperty(each.server, name);
      if (!isFirst) continue;
      if (!this.#isForRequests(each))
        each.server.listen(...(each.args.filter((arg) => typeof arg !== "function") as []));
      else if (isReported)
        logLine(
          "a server that asks for the Function's port is not opened: the code has a handler for its requests",
        );
    }
    this.#all = [];
  }

  /**
   * The program's server, once it listens: a program may connect to its database first. Undefined when it has nothing left
   * to wait for. `what` it has, for the log.
   */
  async awaited(what: string): Promise<Server | undefined> {
    const first = new Promise<void>((resolve) => {
      this.#onFirst = resolve;
      if (this.#all.length > 0) resolve();
    });
    await loaded(first, `${what} and no listening server yet`);
    return this.forRequests ?? this.first;
  }

  #isForRequests({ args }: Handed): boolean {
    const port = portOf(args);
    if (port === this.#port || port === 8080 || port === this.#portReads.given) return true;
    return this.#portReads.seen && this.#all.length === 1;
  }

  #take(server: Server, args: unknown[]): Server {
    const callback = args.find((each) => typeof each === "function") as Callback | undefined;
    if (callback) server.once("listening", callback);
    this.#pretend(server);
    this.#all.push({ server, args });
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

/** `listen(port)`, `listen("port")`, `listen({ port })`. */
function portOf([first]: unknown[]): number | undefined {
  const given =
    first !== null && typeof first === "object" ? (first as { port?: unknown }).port : first;
  return given === undefined || given === null || given === "" ? undefined : Number(given);
}
