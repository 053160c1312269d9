import { type Socket } from "node:net";
import buildConnector, { type Connector } from "undici/lib/core/connect.js";

const connectTimeoutMs = 2_000;

/** Connects to Pods; over HTTP/2 without TLS if `isH2c`. */
export function createConnector(isH2c: boolean): Connector {
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: isH2c,
    useH2c: isH2c,
    // Tunnels end in one direction at a time.
    allowHalfOpen: true,
  });
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error) return callback(error, null);
      readBeforeFailing(socket);
      callback(null, socket);
    });
}

/**
 * A server may respond without reading the whole body, and close the connection: what is still written to it is then refused
 * by a reset (RFC 9112 section 9.6). The response has been received by that time, but Node.js destroys a socket at its
 * first failed write, with all that has not been read from it. Here such a failure is known only once everything has been read,
 * which on a connection that was reset has an end.
 */
function readBeforeFailing(socket: Socket): void {
  const write = socket._write.bind(socket);
  const writev = socket._writev?.bind(socket);
  const later = (callback: Callback): Callback => {
    return (error) => {
      if (!error || socket.readableEnded || socket.destroyed) return callback(error);
      const fail = () => {
        socket.off("end", fail).off("close", fail);
        callback(error);
      };
      socket.once("end", fail).once("close", fail);
    };
  };
  socket._write = (chunk, encoding, callback) => {
    write(chunk, encoding, later(callback));
  };
  if (!writev) return;
  socket._writev = (chunks, callback) => {
    writev(chunks, later(callback));
  };
}

type Callback = (error?: Error | null) => void;
