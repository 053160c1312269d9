import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** Below the ports that the system hands out itself (Linux: from 32768), above the well-known ones. */
const first = 10_000;
const count = 22_000;

/** Where this process looks first; a multiplier keeps processes with neighbouring ids apart. */
let candidate = (process.pid * 7919) % count;

/**
 * A TCP port on which nothing listens at `address`, and which no other caller on this machine is given as long as this
 * process lives: the number is reserved by a UDP socket, which the system frees however the process ends. Two test
 * processes therefore never choose the same port between the choice and the `listen` of the program under test.
 */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  for (let tries = 0; tries < count; tries++) {
    candidate = (candidate + 1) % count;
    const port = first + candidate;
    if ((await isReserved(port)) && (await isFree(port, address))) return port;
  }
  throw new Error(`every port from ${first} to ${first + count - 1} is in use`);
}

/** Whether the number is now this process's own; it stays reserved even if another program listens on it. */
function isReserved(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}

function isFree(port: number, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
