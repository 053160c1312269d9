import { type Socket } from "node:net";
import { type Server } from "node:tls";

/** Handshakes that begin in one round of the event loop; the last of them is of the client that has waited longest. */
const handshakesOfRound = 4;
/** Rounds in which handshakes wait for the other connections of a burst to be accepted. */
const acceptingRounds = 20;
/** How long one part of the process may work in a round of the event loop, in milliseconds: usually, and while clients connect. */
const workMs = { usual: 5, connecting: 0.2 };
/** A burst of connections has ended when the next one does not come within this time, in milliseconds. */
const quietMs = 5;

const noServer = () => {};

let acceptedAt = -Infinity;

/**
 * How long a part of the process that does its work in slices may work until it lets others have a turn, in milliseconds. Node.js
 * accepts one connection in each round of the event loop, so that rounds have to be short while many clients connect.
 */
export function sliceMs(): number {
  return performance.now() - acceptedAt < quietMs ? workMs.connecting : workMs.usual;
}

/**
 * TLS handshakes of a server begin in turns, when the connections of a burst have been accepted. A handshake is much work for a server and
 * little for its client, and connections are accepted in their order, one in each round of the event loop: if each round had a handshake to
 * do as well, a client would wait for the handshakes of all who came before it. The addresses of clients have their turns one after the
 * other. Of one address the newest connection comes first: the clients of a burst wait for each other, and one that comes by itself does not
 * wait for them. Call it before other listeners for connections are added.
 */
export function beginHandshakesInTurns(server: Server): void {
  const [begin = noServer] = server.listeners("connection") as ((socket: Socket) => void)[];
  const waiting = new Map<string, Socket[]>();
  let isScheduled = false;
  let hasAccepted = false;
  let waited = 0;

  const next = (isOldest: boolean): void => {
    for (const [address, sockets] of waiting) {
      waiting.delete(address);
      const socket = isOldest ? sockets.shift() : sockets.pop();
      if (sockets.length > 0) waiting.set(address, sockets);
      if (socket && !socket.destroyed) begin.call(server, socket);
      return;
    }
  };
  const round = (): void => {
    isScheduled = false;
    if (!hasAccepted || ++waited === acceptingRounds) {
      waited = 0;
      for (let count = 1; count <= handshakesOfRound; count++) next(count === handshakesOfRound);
    }
    hasAccepted = false;
    schedule();
  };
  const schedule = (): void => {
    if (isScheduled || waiting.size === 0) return;
    isScheduled = true;
    setImmediate(round);
  };

  server.off("connection", begin);
  server.on("connection", (socket: Socket) => {
    // The client may leave before its turn.
    socket.on("error", () => socket.destroy());
    const address = socket.remoteAddress ?? "";
    const sockets = waiting.get(address);
    if (sockets) sockets.push(socket);
    else waiting.set(address, [socket]);
    acceptedAt = performance.now();
    hasAccepted = true;
    schedule();
  });
}
