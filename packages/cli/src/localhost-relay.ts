/**
 * `localhost` is ::1 as well as 127.0.0.1, and clients ask at ::1 first. Where nothing of the platform listened there, a program that uses
 * the machine's network could, and would get what is meant for the gateway.
 */
import { connect, createServer } from "node:net";
import { connectionLimit, type Logger, messageOf } from "@spry/kube";

/** Listens at the same ports of ::1 and hands connections on to 127.0.0.1. Returns what ends that. */
export async function relayLocalhost(ports: readonly number[], log: Logger): Promise<() => void> {
  const all = ports.filter((port) => port > 0).map((port) => relay(port, log));
  const closers = await Promise.all(all);
  return () => closers.forEach((close) => close());
}

function relay(port: number, log: Logger): Promise<() => void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (incoming) => {
    const outgoing = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    incoming.pipe(outgoing).pipe(incoming);
    const end = () => {
      incoming.destroy();
      outgoing.destroy();
    };
    for (const socket of [incoming, outgoing]) socket.on("error", end).on("close", end);
  });
  server.maxConnections = connectionLimit(5_000, 0.05);
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      // Without IPv6 nothing can listen there.
      if (!["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(error.code ?? ""))
        log.warn({ port, error: messageOf(error) }, "the gateway does not listen at ::1");
      resolve(() => {});
    });
    server.listen({ port, host: "::1", ipv6Only: true }, () => {
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve(() => void server.close());
    });
  });
}
