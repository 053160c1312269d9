/** The webhooks of a cluster, over HTTPS with a certificate that may be replaced while it serves. */
import { createServer } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { boundConnections, type Logger, messageOf } from "@spry/kube";
import { answerWith, webhookConnections } from "../webhook-requests.ts";
import { type WebhookCertificate } from "./webhook-certificate.ts";

export interface WebhookServer {
  /** New connections are served with this one. */
  use(certificate: WebhookCertificate): void;
  /** Goes on answering for so many milliseconds, each connection once more, and then closes. */
  leave(ms: number): Promise<void>;
}

export function startWebhookServer(options: {
  port: number;
  certificate: WebhookCertificate;
  answer: (request: Request) => Promise<Response>;
  log: Logger;
}): WebhookServer {
  const { port, certificate, answer, log } = options;
  const server = createServer(
    { cert: certificate.cert, key: certificate.key, minVersion: "TLSv1.2" },
    answerWith(answer),
  );
  server.keepAliveTimeout = 120_000;
  boundConnections(server, webhookConnections);
  server.on("error", (error) => {
    log.error({ error: messageOf(error) }, "the webhooks' server failed");
    process.exit(1);
  });
  server.listen(port, () => log.info({ port }, "the webhooks answer"));
  return {
    use: ({ cert, key }) => server.setSecureContext({ cert, key, minVersion: "TLSv1.2" }),
    leave: async (ms) => {
      server.prependListener("request", (_request, response) => {
        response.setHeader("connection", "close");
      });
      await pause(ms);
      server.close();
      server.closeIdleConnections();
    },
  };
}
