/** `/healthz`, `/readyz` and `/metrics` over HTTP: for probes and scrapers, in the cluster alone. */
import { createServer, type RequestListener } from "node:http";
import { type PrometheusMetrics } from "@spry/kube";

export interface StatusServer {
  close(): void;
}

/** Metrics and health on a port each (contract, section 11.2); without metrics `/metrics` is not there. */
export async function startStatusServer(options: {
  port: number;
  isReady: () => boolean;
  metrics?: PrometheusMetrics;
}): Promise<StatusServer> {
  const answer: RequestListener = (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://status.internal");
    const text = (status: number, body: string) =>
      void response.writeHead(status, { "content-type": "text/plain; version=0.0.4" }).end(body);
    if (pathname === "/healthz") return text(200, "ok");
    if (pathname === "/readyz") {
      return options.isReady() ? text(200, "ok") : text(503, "not ready");
    }
    if (pathname !== "/metrics" || !options.metrics) return text(404, "not found");
    options.metrics.render().then(
      (body) => text(200, body),
      () => text(500, "rendering the metrics failed"),
    );
  };
  const server = createServer(answer);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, resolve);
  });
  return {
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
