/** Servers that stand in the way to a registry, or in its place. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { createRegistry } from "../index.ts";
import { temporaryDirectory } from "./registry.ts";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Its `host:port`; until the test ends. */
export async function listen(answer: Answer): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A real registry, behind something that may answer instead of it. */
export async function registryBehind(
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean,
) {
  const registry = createRegistry({ dir: temporaryDirectory() });
  onTestFinished(() => registry.close());
  return listen((request, response) => {
    if (!intercept(request, response)) void registry.handle(request, response);
  });
}
