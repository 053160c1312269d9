import { type EventEmitter } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import { beginHandshakesInTurns } from "./handshake-turns.ts";

export interface ConnectionLimits {
  /** Of all clients together. */
  total: number;
  /** Of one address. On loopback all clients have one. */
  ofAddress: number;
}

/** What the server waits for: the head of a request, the rest of one, or nothing. */
type Missing = "head" | "body" | "nothing";

interface Connection {
  address: string;
  socket: Socket;
  missing: Missing;
  /** Requests that have begun and whose responses have not ended. */
  requests: number;
}

/**
 * The open connections of a server. When a limit is reached, one is closed to make room: the one that has waited longest for the
 * head of a request, or if there is none, for its body. A client that sends its request at once is served, however many others
 * send theirs slowly or never.
 */
export class BoundedConnections {
  readonly #limits: ConnectionLimits;
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** Of open connections, by what also the socket of a TLS session says of itself. */
  readonly #byEnds = new Map<string, Connection>();
  readonly #ofAddress = new Map<string, Slowest>();
  readonly #all = new Slowest();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts a new connection until it is closed; returns false if it has no room, and then its caller closes it. */
  admit(socket: Socket): boolean {
    const { remoteAddress: address } = socket;
    // The client has left already.
    if (address === undefined) return false;
    const { total, ofAddress } = this.#limits;
    const neighbours = this.#ofAddress.get(address) ?? new Slowest();
    if (neighbours.size >= ofAddress && !this.#close(neighbours.first())) return false;
    if (this.#all.size >= total && !this.#close(this.#all.first())) return false;
    this.#ofAddress.set(address, neighbours);
    const connection: Connection = { address, socket, missing: "head", requests: 0 };
    this.#bySocket.set(socket, connection);
    const ends = endsOf(socket);
    this.#byEnds.set(ends, connection);
    neighbours.add(connection);
    this.#all.add(connection);
    socket.once("close", () => {
      if (this.#byEnds.get(ends) === connection) this.#byEnds.delete(ends);
      this.#forget(connection);
    });
    return true;
  }

  /** From now on, requests are those of the TLS session on a connection that was admitted. */
  secured(session: Socket): void {
    const connection = this.#byEnds.get(endsOf(session));
    if (connection) this.#bySocket.set(session, connection);
  }

  /** The head of a request has arrived. */
  began(socket: Socket, hasBody = false): void {
    const connection = this.#bySocket.get(socket);
    if (!connection) return;
    connection.requests++;
    this.#move(connection, hasBody ? "body" : "nothing");
  }

  /** A request has arrived whole: its connection is not closed for others before the matching `ended`. */
  received(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection?.missing === "body") this.#move(connection, "nothing");
  }

  /** The response has ended. */
  ended(socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection && --connection.requests === 0) this.#move(connection, "head");
  }

  #move(connection: Connection, missing: Missing): void {
    if (connection.missing === missing || !this.#all.has(connection)) return;
    const neighbours = this.#ofAddress.get(connection.address);
    this.#all.remove(connection);
    neighbours?.remove(connection);
    connection.missing = missing;
    this.#all.add(connection);
    neighbours?.add(connection);
  }

  #close(connection: Connection | undefined): boolean {
    if (!connection) return false;
    this.#forget(connection);
    connection.socket.destroy();
    return true;
  }

  #forget(connection: Connection): void {
    this.#all.remove(connection);
    const neighbours = this.#ofAddress.get(connection.address);
    neighbours?.remove(connection);
    if (neighbours?.size === 0) this.#ofAddress.delete(connection.address);
  }
}

/** Connections by what they lack, each list in the order in which they came to lack it. */
class Slowest {
  readonly #by: Record<Missing, Set<Connection>> = {
    head: new Set(),
    body: new Set(),
    nothing: new Set(),
  };

  get size(): number {
    const { head, body, nothing } = this.#by;
    return head.size + body.size + nothing.size;
  }

  /** The one that may be closed for another. */
  first(): Connection | undefined {
    const [connection] = this.#by.head.size > 0 ? this.#by.head : this.#by.body;
    return connection;
  }

  has(connection: Connection): boolean {
    return this.#by[connection.missing].has(connection);
  }

  add(connection: Connection): void {
    this.#by[connection.missing].add(connection);
  }

  remove(connection: Connection): void {
    this.#by[connection.missing].delete(connection);
  }
}

const bounded = new WeakSet<Server>();

/**
 * Bounds the connections of an HTTP or HTTPS server, as `BoundedConnections` says; TLS handshakes begin in turns. Call it once all
 * listeners for requests are added; the first limits that a server gets are those that it keeps.
 */
export function boundConnections(server: Server, limits: ConnectionLimits): void {
  if (bounded.has(server)) return;
  bounded.add(server);
  if (server instanceof TlsServer) beginHandshakesInTurns(server);
  const connections = new BoundedConnections(limits);
  server.prependListener("connection", (socket: Socket) => {
    if (!connections.admit(socket)) socket.destroy();
  });
  server.prependListener("secureConnection", (session: Socket) => connections.secured(session));
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) =>
    noteRequest(connections, request, response),
  );
  // Without a listener Node.js treats it as an ordinary request.
  if (server.listenerCount("upgrade") > 0)
    server.prependListener("upgrade", ({ socket }: IncomingMessage) => connections.began(socket));
}

type Stream = Pick<EventEmitter, "once">;

/**
 * The connection of a request is not closed for others from when the request has arrived until its response has ended.
 * `socket`: what was admitted, where HTTP/2 shows the request another one.
 */
export function noteRequest(
  connections: BoundedConnections,
  request: Stream & Pick<IncomingMessage, "headers" | "socket">,
  response: { once(event: "close", listener: () => void): unknown },
  socket: Socket = request.socket,
): void {
  const { headers } = request;
  const hasBody =
    headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
  connections.began(socket, hasBody);
  if (hasBody) request.once("end", () => connections.received(socket));
  response.once("close", () => connections.ended(socket));
}

const endsOf = ({ remoteAddress, remotePort, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localPort}`;
