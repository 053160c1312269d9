import { readFileSync } from "node:fs";
import { type OwnPorts } from "./own-ports.ts";

/** The port of the API server that a kubeconfig of an earlier start names; 0 without one. */
export function portBefore(kubeconfig: string): number {
  try {
    const text = readFileSync(kubeconfig, "utf8");
    const port = Number(/^ *server: ['"]?https:\/\/[^\s'"]+:(\d{1,5})['"]?$/m.exec(text)?.[1]);
    return port > 0 && port <= 65_535 ? port : 0;
  } catch {
    return 0;
  }
}

/**
 * Listens on any free port, preferably the previous one: what still runs from an earlier start, the gateway above
 * all, keeps using an API server at the same address, and is replaced otherwise.
 */
export async function listenAgain<T>(
  before: number,
  listen: (port: number) => Promise<T>,
  ports: OwnPorts,
): Promise<T> {
  if (before === 0) return listen(0);
  return ports.listen(before, listen).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return listen(0);
  });
}
