import { type Socket } from "node:net";
import { type ResponseHeaders } from "../attempt/attempt.ts";
import { type UpgradeSocket } from "../request/passage.ts";
import { responseHeaders } from "./forwarded-headers.ts";

/** A side that sends nothing for so long after the other has ended is gone without having closed its connection. */
const halfClosedTimeoutMs = 60_000;

/**
 * After `101 Switching Protocols` the two connections are one: bytes flow both ways, each way ends
 * by itself (half-close), and an error on either side ends both.
 */
export function joinTunnel(
  { socket: client, head }: UpgradeSocket,
  upstream: Socket,
  status: number,
  headers: ResponseHeaders,
): void {
  const lines = [`HTTP/1.1 ${status} Switching Protocols`, "connection: Upgrade"];
  if (headers.upgrade) lines.push(`upgrade: ${String(headers.upgrade)}`);
  const rest = responseHeaders(headers);
  for (let i = 0; i < rest.length; i += 2) lines.push(`${rest[i]}: ${rest[i + 1]}`);
  client.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (head.length > 0) upstream.write(head);
  client.pipe(upstream);
  upstream.pipe(client);
  upstream.once("end", () => client.setTimeout(halfClosedTimeoutMs, () => client.destroy()));
  client.once("end", () => upstream.setTimeout(halfClosedTimeoutMs, () => upstream.destroy()));
  client.on("error", () => upstream.resetAndDestroy());
  upstream.on("error", () => client.resetAndDestroy());
  client.once("close", () => upstream.destroy());
  upstream.once("close", () => {
    // What the Pod sent last may still be on its way to the client.
    if (!client.writableEnded) client.destroy();
  });
}
