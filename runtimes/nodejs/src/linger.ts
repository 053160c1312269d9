import { type FunctionRequest } from "./function-request.ts";

/** As long as Python's. */
const lingerMs = 2_000;

const restMs = 5_000;

/** Most clients read the answer when they have sent their body: one that is refused on its way is let do so, for a moment. */
export function letFinish(request: FunctionRequest): void {
  if (request.complete) return;
  request.resume();
  setTimeout(() => request.complete || request.destroy(), restMs).unref();
}

/**
 * Where a connection ends with its answer, Node.js closes it at once. If some of the request's body is unread or still to come, that resets
 * the connection, and the client may lose the answer. So only our side is closed, and the rest is read and thrown away for a while
 * (RFC 9112, section 9.6).
 */
export function lingerAfterAnswer(request: FunctionRequest): void {
  const { socket } = request;
  const close = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    socket.destroySoon = close;
    if (request.complete || socket.destroyed) return close();
    socket.end();
    const timer = setTimeout(close, lingerMs);
    socket.once("close", () => clearTimeout(timer));
    request.once("end", close).resume();
  };
}
