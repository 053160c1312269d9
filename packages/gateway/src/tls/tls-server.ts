import { randomBytes } from "node:crypto";
import { type Socket } from "node:net";
import * as tls from "node:tls";
import {
  beginHandshakesInTurns,
  BoundedConnections,
  type Clock,
  type ConnectionLimits,
} from "@spry/kube";
import { tlsSettings } from "./certificates.ts";

export interface TlsServerOptions {
  /** The certificate for a host name in lower case; undefined refuses the connection. */
  certificateFor: (servername: string) => tls.SecureContext | undefined;
  /** Takes a connection whose handshake is done. */
  accept: (socket: tls.TLSSocket) => void;
  clock: Clock;
  handshakeTimeoutMs: number;
  connections: ConnectionLimits;
}

export interface TlsServer {
  server: tls.Server;
  /** Accepts no more; resolves when all connections have ended, which those that are left after `ms` are made to. */
  close: (ms: number) => Promise<void>;
}

/** Anyone who gets their key can read the tickets: it is not kept for longer. */
const ticketKeyMs = 12 * 3_600_000;

/**
 * Takes connections over TLS (1.2 and 1.3) and hands them on as streams of plain bytes. A client that names no host, or
 * one without a certificate, learns nothing but that the handshake has failed.
 */
export function createTlsServer(options: TlsServerOptions): TlsServer {
  const { certificateFor, accept, clock } = options;
  const server = tls.createServer({
    ...tlsSettings,
    handshakeTimeout: options.handshakeTimeoutMs,
    ALPNProtocols: ["h2", "http/1.1"],
    ticketKeys: randomBytes(48),
    SNICallback(servername, done) {
      const context = certificateFor(servername.toLowerCase());
      if (context) done(null, context);
      else done(new Error("no certificate for this host"));
    },
  });
  beginHandshakesInTurns(server);
  const sockets = new Set<Socket>();
  // Slow handshakes make room for others; what comes after them is bounded by whom the connection is handed to.
  const connections = new BoundedConnections(options.connections);
  server.prependListener("connection", (socket: Socket) => {
    if (!connections.admit(socket)) return void socket.destroy();
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("secureConnection", (socket) => {
    // A connection that fails is the client's to notice.
    socket.on("error", () => socket.destroy());
    connections.secured(socket);
    connections.began(socket);
    accept(socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  let cancel = () => {};
  const renew = () => {
    server.setTicketKeys(randomBytes(48));
    cancel = clock.after(ticketKeyMs, renew);
  };
  cancel = clock.after(ticketKeyMs, renew);
  return {
    server,
    close(ms) {
      cancel();
      return new Promise((resolve) => {
        const cancelCut = clock.after(ms, () => {
          for (const socket of sockets) socket.destroy();
        });
        server.close(() => {
          cancelCut();
          resolve();
        });
      });
    },
  };
}
