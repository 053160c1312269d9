/** What the registry stores, for the dashboard's Pods alone, which decide what their users may see of it (network.ts). */
import { createServer } from "node:http";
import { type RegistryUsage } from "@spry/function";
import { type Logger } from "@spry/kube";
import { type Listening, listening } from "../listening.ts";

export function startUsageServer(options: {
  port: number;
  usage: () => Promise<RegistryUsage>;
  log: Logger;
}): Promise<Listening> {
  const { usage, log } = options;
  let current: Promise<RegistryUsage> | undefined;
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== "/usage")
      return void response.writeHead(404).end();
    // Those who ask meanwhile share the result.
    current ??= usage().finally(() => (current = undefined));
    current.then(
      (found) =>
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(found)),
      (error: unknown) => {
        log.error({ error }, "reporting what is stored");
        response.writeHead(503).end();
      },
    );
  });
  return listening(server, { port: options.port });
}
