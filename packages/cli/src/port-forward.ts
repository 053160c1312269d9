/**
 * A port of a Pod on this machine, through the API server: for each connection a WebSocket of the protocol
 * `v4.channel.k8s.io`. Channel 0 carries the bytes, 1 what went wrong; each begins with the port's number (2 bytes).
 */
import { createServer, type Socket } from "node:net";
import { type ClusterConfig, webSocketAccess } from "@spry/kube";
import { type RawData, WebSocket } from "ws";
import { listening, type Relay } from "./debug/relay.ts";
import { printable } from "./printable.ts";

export interface ForwardOptions {
  namespace: string;
  pod: string;
  /** The Pod's. */
  remotePort: number;
  /** On 127.0.0.1; 0: any free one. */
  localPort: number;
  report: (line: string) => void;
}

const protocol = "v4.channel.k8s.io";
/** Bytes that are buffered for a connection that does not read. */
const maxBufferedBytes = 1024 * 1024;

/** Listens until `close`. Fails with EADDRINUSE where the port is taken. */
export async function forwardPort(cluster: ClusterConfig, options: ForwardOptions): Promise<Relay> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    forward(cluster, options, socket).catch((error: unknown) => {
      options.report(`forwarding port ${options.remotePort}: ${printable(String(error))}`);
      socket.destroy();
    });
  });
  const port = await listening(server, options.localPort);
  return {
    port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function forward(
  cluster: ClusterConfig,
  { namespace, pod, remotePort, report }: ForwardOptions,
  local: Socket,
): Promise<void> {
  // Nothing is read before there is somewhere to send it.
  local.pause();
  local.on("error", () => local.destroy());
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/portforward?ports=${remotePort}`;
  const { url, headers, tls } = await webSocketAccess(cluster, path);
  const remote = new WebSocket(url, protocol, { headers, ...tls, perMessageDeflate: false });
  const begun = new Set<number>();
  remote.on("open", () => local.resume());
  local.on("data", (chunk: Buffer) => {
    remote.send(Buffer.concat([Buffer.from([0]), chunk]));
    if (remote.bufferedAmount <= maxBufferedBytes) return;
    local.pause();
    const timer = setInterval(() => {
      if (remote.bufferedAmount > maxBufferedBytes && remote.readyState === WebSocket.OPEN) return;
      clearInterval(timer);
      local.resume();
    }, 5);
  });
  remote.on("message", (data: RawData) => {
    const message = data as Buffer;
    const channel = message[0] ?? 0;
    const content = message.subarray(1);
    if (!begun.has(channel)) return void begun.add(channel);
    if (channel === 1) return report(printable(content.toString()));
    if (local.write(content)) return;
    remote.pause();
    local.once("drain", () => remote.resume());
  });
  remote.on("error", ({ message }) => {
    report(`forwarding port ${remotePort}: ${printable(message)}`);
    local.destroy();
  });
  remote.on("close", () => local.end());
  local.on("close", () => remote.close());
}
