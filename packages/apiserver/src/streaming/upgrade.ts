import { type IncomingMessage, STATUS_CODES } from "node:http";
import { type Duplex } from "node:stream";
import { type Logger, messageOf, StatusError } from "@spry/kube";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import { badRequest } from "../errors.ts";
import { errorResponse } from "../http/responses.ts";
import { startCommand } from "./command-channels.ts";
import { type PodStream, type PortStream } from "./pod-stream.ts";
import { forwardPorts } from "./port-forwarding.ts";
import { spdyCommandClient, spdyCommandProtocols } from "./spdy-command.ts";
import { SpdySession } from "./spdy-session.ts";
import { forwardPortChannels, portChannelProtocol } from "./web-socket-ports.ts";
import { commandProtocols, greet, webSocketCommandClient } from "./web-socket-command.ts";

/** A request whose connection is to become something else. */
export interface Upgrade {
  incoming: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  /** From then on an error cannot be reported by HTTP. */
  switched?: boolean;
}

const spdyPortProtocol = "portforward.k8s.io";
/** The same frames as with SPDY, inside of a WebSocket. */
const tunnelProtocol = `SPDY/3.1+${spdyPortProtocol}`;
const maxMessageBytes = 16 * 1024 * 1024;
const pingMs = 30_000;

const webSockets = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  maxPayload: maxMessageBytes,
  // What was chosen has been put first.
  handleProtocols: (offered) => [...offered][0] ?? false,
});

/**
 * Serves a stream into a Pod over WebSocket or SPDY. What fails before the connection has changed is
 * answered in HTTP; resolves when the connection has ended.
 */
export async function serveUpgrade(
  upgrade: Upgrade,
  find: () => Promise<PodStream>,
  log: Logger,
): Promise<void> {
  const { socket } = upgrade;
  socket.on("error", (error) => log.debug({ error: messageOf(error) }, "stream ended early"));
  try {
    const stream = await find();
    const kind = (upgrade.incoming.headers.upgrade ?? "").toLowerCase();
    if (kind === "websocket") await overWebSocket(upgrade, stream);
    else if (kind === "spdy/3.1") await overSpdy(upgrade, stream);
    else throw badRequest(`unable to upgrade: missing upgrade headers in request`);
  } catch (error) {
    if (!(error instanceof StatusError)) log.debug({ error: messageOf(error) }, "stream failed");
    if (upgrade.switched) socket.destroy();
    else refuseUpgrade(socket, error);
  }
}

async function overWebSocket(upgrade: Upgrade, stream: PodStream): Promise<void> {
  const { headers } = upgrade.incoming;
  const served = stream.kind === "port" ? portProtocolsOf(stream) : commandProtocols;
  const protocol = chosen(listed(headers["sec-websocket-protocol"]), served);
  headers["sec-websocket-protocol"] = protocol;
  if (stream.kind === "port") {
    const socket = await accepted(upgrade);
    if (protocol === portChannelProtocol) return forwardPortChannels(socket, stream);
    return servePorts(createWebSocketStream(socket), stream);
  }
  const command = await startCommand(stream);
  try {
    const socket = await accepted(upgrade);
    socket.pause();
    greet(socket, stream);
    await command.carry(webSocketCommandClient(socket));
  } finally {
    command.abandon();
  }
}

async function overSpdy(upgrade: Upgrade, stream: PodStream): Promise<void> {
  const offered = listed(upgrade.incoming.headers["x-stream-protocol-version"]);
  const served = stream.kind === "port" ? [spdyPortProtocol] : spdyCommandProtocols;
  const protocol = chosen(offered, served);
  if (stream.kind === "port") {
    switchToSpdy(upgrade, protocol);
    return servePorts(upgrade.socket, stream);
  }
  const command = await startCommand(stream);
  try {
    switchToSpdy(upgrade, protocol);
    await command.carry(await spdyCommandClient(upgrade.socket, stream));
  } finally {
    command.abandon();
  }
}

function portProtocolsOf({ ports }: PortStream): string[] {
  return ports.length > 0 ? [tunnelProtocol, portChannelProtocol] : [tunnelProtocol];
}

function switchToSpdy(upgrade: Upgrade, protocol: string): void {
  const { socket, head } = upgrade;
  upgrade.switched = true;
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
      `X-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
  );
  if (head.length > 0) socket.unshift(head);
}

async function servePorts(connection: Duplex, stream: PortStream): Promise<void> {
  connection.on("error", () => {});
  await new SpdySession(connection, forwardPorts(stream)).run();
}

/** Completes the handshake; pings detect a client that has disconnected without closing. */
function accepted(upgrade: Upgrade): Promise<WebSocket> {
  const { incoming, socket, head } = upgrade;
  upgrade.switched = true;
  return new Promise((resolve, reject) => {
    socket.once("close", () => reject(new Error("client has left")));
    webSockets.handleUpgrade(incoming, socket, head, (webSocket) => {
      const pings = setInterval(() => webSocket.ping(), pingMs).unref();
      webSocket.once("close", () => clearInterval(pings));
      webSocket.on("error", () => webSocket.terminate());
      resolve(webSocket);
    });
  });
}

function listed(header: string | string[] | undefined): string[] {
  return [header ?? []].flat().flatMap((value) => value.split(",").map((each) => each.trim()));
}

function chosen(offered: readonly string[], served: readonly string[]): string {
  const protocol = served.find((each) => offered.includes(each));
  if (protocol) return protocol;
  const said = offered.map((each) => each.slice(0, 64)).slice(0, 8);
  throw badRequest(
    `unable to upgrade: unable to negotiate protocol: client supports [${said.join(" ")}], server accepts [${served.join(" ")}]`,
  );
}

/** Responds over HTTP with the reason why the protocol is not switched, and closes the connection. */
export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { status, body } = errorResponse(error);
  const text = typeof body === "string" ? body : "";
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
}
