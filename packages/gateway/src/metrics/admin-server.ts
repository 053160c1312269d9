import * as http from "node:http";
import { type GatewayMetrics } from "./gateway-metrics.ts";

/** `/metrics`, `/healthz` and `/readyz`, for a port that is not for the public. */
export function createAdminServer(metrics: GatewayMetrics, ready: Promise<void>): http.Server {
  let isReady = false;
  void ready.then(() => (isReady = true));
  return http.createServer((request, response) => {
    const page = pageOf(request.url ?? "", metrics, isReady);
    response.writeHead(page.status, { "content-type": "text/plain; version=0.0.4" });
    response.end(page.body);
  });
}

function pageOf(
  url: string,
  metrics: GatewayMetrics,
  isReady: boolean,
): { status: number; body: string } {
  if (url === "/metrics") return { status: 200, body: metrics.render() };
  if (url === "/healthz") return { status: 200, body: "ok\n" };
  if (url === "/readyz")
    return { status: isReady ? 200 : 503, body: isReady ? "ok\n" : "waiting\n" };
  return { status: 404, body: "not found: the paths are /metrics, /healthz and /readyz\n" };
}
