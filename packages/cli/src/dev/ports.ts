/** The ports of `spry dev`. */
import { type Server } from "node:http";
import { UserError } from "../user-error.ts";

const first = 3000;
const maxTries = 100;

/**
 * Lets servers listen one after the other, each on the next port. `wanted`: the first one's, and then all have to be free; 0 is any. A
 * single one that finds its port taken is content with any.
 */
export function portsFrom(
  wanted: number | undefined,
  isAlone: boolean,
): (server: Server) => Promise<number> {
  let next = wanted ?? first;
  return async (server) => {
    if (wanted === 0) return listenOn(server, 0);
    for (let tries = 1; ; tries++) {
      const port = next++;
      try {
        return await listenOn(server, port);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        if (wanted !== undefined) throw taken(port);
        if (isAlone || tries >= maxTries) return listenOn(server, 0);
      }
    }
  };
}

const taken = (port: number): UserError =>
  new UserError(
    `port ${port} is in use by another program`,
    "choose another one with --port (0: any free one)",
  );

function listenOn(server: Server, port: number): Promise<number> {
  return new Promise<number>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve((server.address() as { port: number }).port);
    });
  });
}
