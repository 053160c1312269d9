/** Where Git servers send pushes: plain HTTP, for a proxy or an Ingress with a certificate to stand before. */
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createPushWebhook } from "@spry/controller";
import { type KubeClient, type Logger } from "@spry/kube";
import { type Listening, listening } from "./listening.ts";

const requestTimeoutMs = 30_000;

export async function startPushServer(options: {
  client: KubeClient;
  host: string;
  port: number;
  log: Logger;
}): Promise<Listening> {
  const webhook = createPushWebhook(options);
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const { method = "GET", url = "/", headers } = incoming;
      const hasBody = method !== "GET" && method !== "HEAD";
      const entries = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
        typeof value === "string" ? [[name, value]] : [],
      );
      const request = new Request(new URL(url, "http://webhook"), {
        method,
        headers: entries,
        ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {}),
      });
      const answer = await webhook.fetch(request);
      // What was not read of a request that is refused is not waited for.
      outgoing.writeHead(answer.status, {
        ...Object.fromEntries(answer.headers),
        connection: "close",
      });
      outgoing.end(Buffer.from(await answer.arrayBuffer()));
    })().catch(() => outgoing.destroy());
  });
  server.requestTimeout = requestTimeoutMs;
  return listening(server, options);
}
