import { type Server } from "node:http";
import { type AddressInfo, type Server as AnyServer, type Socket } from "node:net";
import { type Clock } from "@spry/kube";

export interface Listening {
  readonly port: number;
  /** Stops accepting, lets requests under way end, and then closes what is left. */
  close(): Promise<void>;
}

const sweepMs = 50;

/** Whether only programs of this machine reach a server that listens there. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Resolves with the port once the server accepts connections; rejects when it cannot. */
export function listen(
  server: AnyServer,
  address: { host: string; port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Closes the server: connections as their requests end, all others after `ms`. `tunnels` are those
 * that the server has handed over and no longer knows; `alongside` resolves when what else it serves has ended.
 */
export async function drain(
  server: Server,
  tunnels: Iterable<Socket>,
  ms: number,
  clock: Clock,
  alongside?: Promise<void>,
): Promise<void> {
  const cancelCut = clock.after(ms, () => {
    server.closeAllConnections();
    for (const socket of tunnels) socket.destroy();
  });
  let cancelSweep = () => {};
  // Connections become idle one by one, as the requests on them end.
  const sweep = () => {
    server.closeIdleConnections();
    cancelSweep = clock.after(sweepMs, sweep);
  };
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  sweep();
  await Promise.all([closed, alongside]);
  cancelCut();
  cancelSweep();
}
