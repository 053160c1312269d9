import { type Server } from "node:net";

/** A port of 127.0.0.1 that leads elsewhere, until `close`. */
export interface Relay {
  port: number;
  close(): void;
}

/** Fails with EADDRINUSE where the port is taken; 0 is any free one. */
export function listening(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  });
}
