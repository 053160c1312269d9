import { createHash } from "node:crypto";
import { type Socket } from "node:net";
import { monotonicMs } from "../clock.ts";
import { type FunctionRequest } from "../function-request.ts";
import { logError } from "../log.ts";
import { type Invocation } from "../invoke.ts";
import { type FunctionServer } from "../server.ts";
import { ServerWebSocket } from "./server-websocket.ts";

/** Fixed by RFC 6455, section 1.3. */
const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Hands every `Upgrade: websocket` to the Function's `websocket(socket, request)`. Returns what closes
 * all connections (1001), for a runtime that stops.
 */
export function acceptWebSockets(server: FunctionServer, invocation: Invocation): () => void {
  const open = new Set<ServerWebSocket>();
  server.on("upgrade", (request: FunctionRequest, socket: Socket, head: Buffer) => {
    invocation.tracing?.leave();
    const mistake = mistakeOf(request);
    if (mistake) return refuse(socket, mistake);
    const limit = invocation.settings.bodyLimitMb * 1024 * 1024;
    const [protocol = ""] = (request.headers["sec-websocket-protocol"] ?? "").split(/\s*,\s*/);
    socket.write(answerTo(request, protocol));
    if (head.length > 0) socket.unshift(head);
    const webSocket = new ServerWebSocket(socket, { protocol, limit });
    open.add(webSocket);
    webSocket.addEventListener("close", () => open.delete(webSocket));
    void call(invocation, webSocket, request);
  });
  return () => {
    for (const webSocket of open) webSocket.close(1001, "the Function is stopping");
  };
}

/** Counted as a call, for as long as `websocket` takes, not for as long as the connection is open. */
async function call(
  { handler, metrics }: Invocation,
  socket: ServerWebSocket,
  request: FunctionRequest,
): Promise<void> {
  const start = monotonicMs();
  metrics.begin();
  try {
    await handler.websocket?.(socket, request);
    metrics.settle(monotonicMs() - start, false);
  } catch (error) {
    metrics.settle(monotonicMs() - start, true);
    logError("the handler of a WebSocket threw", error);
    socket.close(1011, "Internal server error");
  }
}

function mistakeOf({ method, headers }: FunctionRequest): string | undefined {
  if (headers.upgrade?.toLowerCase() !== "websocket")
    return "only upgrades to websocket are supported";
  if (method !== "GET") return "a WebSocket handshake must be a GET request";
  if (headers["sec-websocket-version"] !== "13") return "the WebSocket version must be 13";
  if (!/^[\w+/]{22}==$/.test(headers["sec-websocket-key"] ?? ""))
    return "Sec-WebSocket-Key is missing or invalid";
  return undefined;
}

/** Only we close the connection now: a client may leave it open for good. */
function refuse(socket: Socket, mistake: string): void {
  socket.on("error", () => {});
  const version = "sec-websocket-version: 13\r\nconnection: close\r\n";
  const length = `content-length: ${mistake.length}`;
  socket.end(`HTTP/1.1 400 Bad Request\r\n${version}${length}\r\n\r\n${mistake}`);
  socket.destroySoon();
}

function answerTo({ headers }: FunctionRequest, protocol: string): string {
  const key = `${headers["sec-websocket-key"]}${magic}`;
  const accept = createHash("sha1").update(key).digest("base64");
  return (
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    `Sec-WebSocket-Accept: ${accept}\r\n` +
    (protocol === "" ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`) +
    "\r\n"
  );
}
