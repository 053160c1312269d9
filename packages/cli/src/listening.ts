import { type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { boundConnections, connectionLimit } from "@spry/kube";

export interface Listening {
  readonly port: number;
  /** Resolves when the port is free; connections are cut off. */
  close(): Promise<void>;
}

/** Of servers that the platform's own parts and its operators use, unless they have set other limits. */
const connectionLimits = {
  total: connectionLimit(256, 0.05),
  ofAddress: connectionLimit(128, 0.025),
};

/** Of an HTTP or HTTPS server. Without a host on all interfaces; port 0 is any. Rejects with the system's error. */
export async function listening(
  server: Server,
  { port, host }: { port: number; host?: string | undefined },
): Promise<Listening> {
  boundConnections(server, connectionLimits);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
