import * as http from "node:http";
import { countsPath } from "@spry/function";
import { type Counts, type CountsWriter } from "./counts.ts";
import { type GatewayMetrics } from "./gateway-metrics.ts";

/** A scaler that reads so slowly is disconnected. */
const maxUnreadBytes = 4 * 1024 ** 2;

interface Page {
  status: number;
  body: string;
}

/** `/metrics`, `/healthz`, `/readyz` and `/counts`, for a port that is not for the public. */
export function createAdminServer(
  metrics: GatewayMetrics,
  counts: Counts,
  ready: Promise<void>,
): http.Server {
  let isReady = false;
  void ready.then(() => (isReady = true));
  return http.createServer((request, response) => {
    if (request.url === countsPath) return streamCounts(counts, response);
    const page = pageOf(request.url ?? "", metrics, isReady);
    response.writeHead(page.status, { "content-type": "text/plain; version=0.0.4" });
    response.end(page.body);
  });
}

function pageOf(url: string, metrics: GatewayMetrics, isReady: boolean): Page {
  if (url === "/metrics") return { status: 200, body: metrics.render() };
  if (url === "/healthz") return { status: 200, body: "ok\n" };
  if (url === "/readyz") {
    return { status: isReady ? 200 : 503, body: isReady ? "ok\n" : "waiting\n" };
  }
  const body = `not found: the paths are /metrics, /healthz, /readyz and ${countsPath}\n`;
  return { status: 404, body };
}

/** Lines of JSON for as long as the client listens (`CountsLine`). */
function streamCounts(counts: Counts, response: http.ServerResponse): void {
  const write: CountsWriter = (text) => {
    if (text === "") return true;
    response.write(text);
    if (response.writableLength <= maxUnreadBytes) return true;
    response.destroy();
    return false;
  };
  response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
  response.once("close", () => counts.unsubscribe(write));
  if (!counts.subscribe(write)) response.destroy();
}
