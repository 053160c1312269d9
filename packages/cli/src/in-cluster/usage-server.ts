/**
 * What the registry stores, for the dashboard's Pods alone, which decide what their users may see of it. They show the token
 * that both have (usage-token.ts): network policies are not enforced everywhere.
 */
import { createServer } from "node:http";
import { type RegistryUsage } from "@spry/function";
import { bearerToken, boundConnections, isSameSecret, type Logger } from "@spry/kube";
import { type Listening, listening } from "../listening.ts";

export function startUsageServer(options: {
  port: number;
  /** What clients have to show; undefined while there is none, and then all are refused. */
  token: () => Promise<string | undefined>;
  usage: () => Promise<RegistryUsage>;
  log: Logger;
}): Promise<Listening> {
  const { token, usage, log } = options;
  let current: Promise<RegistryUsage> | undefined;
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== "/usage")
      return void response.writeHead(404).end();
    const report = async () => {
      if (!isBearer(request.headers.authorization, await token()))
        return void response.writeHead(401, { "www-authenticate": "Bearer" }).end();
      // Those who ask meanwhile share the result.
      current ??= usage().finally(() => (current = undefined));
      const text = JSON.stringify(await current);
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    };
    report().catch((error: unknown) => {
      log.error({ error }, "reporting what is stored");
      response.writeHead(503).end();
    });
  });
  boundConnections(server, { total: 64, ofAddress: 32 });
  return listening(server, { port: options.port });
}

/** RFC 6750, section 2.1. */
function isBearer(authorization: string | undefined, token: string | undefined): boolean {
  const given = bearerToken(authorization);
  return given !== undefined && Boolean(token) && isSameSecret(given, token ?? "");
}
