/**
 * Leads Git to what answers for a Service. Git connects to a host's own port, while a Service's endpoints have others, and its
 * address is nothing to this machine; a SOCKS proxy (RFC 1928) decides itself where a connection goes.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { type Endpoint } from "./git-server.ts";

interface Target {
  host: string;
  port: number;
}

const version = 5;
const noAuthentication = 0;
const connectCommand = 1;
const domainName = 3;
const succeeded = 0;
const hostUnreachable = 4;
const notAllowed = 2;
const maxConnections = 16;
/** For the greeting and the request: curl sends them at once. */
const handshakeMs = 10_000;

/** Listens on loopback as long as Git runs, and knows one way: to the Service's port. */
export class ServiceRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: Target;
  readonly #endpoints: readonly Endpoint[];
  readonly #sockets = new Set<Socket>();

  private constructor(target: Target, endpoints: readonly Endpoint[]) {
    this.#target = target;
    this.#endpoints = endpoints;
    this.#server = createServer((socket) => void this.#serve(this.#kept(socket)));
    this.#server.maxConnections = maxConnections;
  }

  static async open(target: Target, endpoints: readonly Endpoint[]): Promise<ServiceRelay> {
    const relay = new ServiceRelay(target, endpoints);
    await once(relay.#server.listen(0, "127.0.0.1"), "listening");
    return relay;
  }

  /** For curl: it leaves the name to the proxy. */
  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `socks5h://127.0.0.1:${port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  #kept(socket: Socket): Socket {
    this.#sockets.add(socket);
    // The other side's end is seen by its own events.
    return socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
  }

  async #serve(client: Socket): Promise<void> {
    client.setTimeout(handshakeMs, () => client.destroy());
    try {
      const reader = new Reader(client);
      const [, methods = 0] = await reader.take(2);
      await reader.take(methods);
      client.write(Buffer.of(version, noAuthentication));
      const place = await requested(reader);
      if (place?.host !== this.#target.host || place.port !== this.#target.port)
        return void client.end(reply(notAllowed));
      const endpoint = this.#endpoints[Math.floor(Math.random() * this.#endpoints.length)];
      if (!endpoint) return void client.end(reply(hostUnreachable));
      const server = this.#kept(connect(endpoint));
      server.on("error", () => client.end(reply(hostUnreachable)));
      await once(server, "connect");
      client.setTimeout(0);
      client.write(reply(succeeded));
      server.on("close", () => client.destroy());
      client.on("close", () => server.destroy());
      reader.release();
      client.pipe(server).pipe(client);
    } catch {
      client.destroy();
    }
  }
}

async function requested(reader: Reader): Promise<Target | undefined> {
  const [, command, , kind] = await reader.take(4);
  if (command !== connectCommand || kind !== domainName) return undefined;
  const [length = 0] = await reader.take(1);
  const host = (await reader.take(length)).toString("latin1").toLowerCase();
  return { host, port: (await reader.take(2)).readUInt16BE() };
}

/** The address in it is not used by clients that only connect. */
function reply(code: number): Buffer {
  return Buffer.of(version, code, 0, 1, 0, 0, 0, 0, 0, 0);
}

/** Bytes of a socket by number, not as they arrive. */
class Reader {
  readonly #socket: Socket;
  readonly #onReadable: () => void;
  #waiting:
    | { count: number; settle: (bytes: Buffer) => void; fail: (error: Error) => void }
    | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#onReadable = () => this.#try();
    socket.on("readable", this.#onReadable);
    socket.on("close", () => this.#waiting?.fail(new Error("closed")));
  }

  /** Rejects when the socket is closed before that many have come. */
  take(count: number): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    if (count === 0) resolve(Buffer.alloc(0));
    else this.#waiting = { count, settle: resolve, fail: reject };
    this.#try();
    return promise;
  }

  release(): void {
    this.#socket.off("readable", this.#onReadable);
  }

  #try(): void {
    const waiting = this.#waiting;
    const bytes = waiting && (this.#socket.read(waiting.count) as Buffer | null);
    if (!waiting || !bytes) return;
    this.#waiting = undefined;
    if (bytes.length < waiting.count) waiting.fail(new Error("ended"));
    else waiting.settle(bytes);
  }
}
