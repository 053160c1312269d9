/** `/healthz`, `/readyz` and `/metrics` over HTTP: for probes and scrapers, never for the public. */
import { createServer, type RequestListener } from "node:http";
import { bearerToken, isSameSecret, type PrometheusMetrics } from "@spry/kube";
import { type Listening, listening } from "./listening.ts";

const headTimeoutMs = 10_000;
const unauthorized =
  "/metrics needs the header Authorization: Bearer, with the token in the file metrics.token of the data directory";

/** Metrics and health on a port each (docs/compatibility.md#manager); without metrics `/metrics` is 404. */
export async function startStatusServer(options: {
  /** All interfaces by default. */
  host?: string;
  port: number;
  isReady: () => boolean;
  /** Names what is stuck; with anything `/healthz` fails. It may take its time. */
  stuck?: () => Promise<string[]>;
  metrics?: Pick<PrometheusMetrics, "render">;
  /** What clients of `/metrics` have to show (RFC 6750 section 2.1); absent: nothing. */
  metricsToken?: string;
}): Promise<Listening> {
  const { stuck = async () => [] } = options;
  const health = async (text: (status: number, body: string) => void) => {
    const names = await stuck();
    if (names.length === 0) text(200, "ok");
    else text(500, `these control loops are stuck: ${names.join(", ")}`);
  };
  const answer: RequestListener = (request, response) => {
    // Not by URL, which throws for a path such as `//`.
    const [pathname] = (request.url ?? "/").split("?", 1);
    const text = (status: number, body: string) =>
      void response.writeHead(status, { "content-type": "text/plain; version=0.0.4" }).end(body);
    if (pathname === "/healthz") return void health(text);
    if (pathname === "/readyz") {
      return options.isReady() ? text(200, "ok") : text(503, "not ready");
    }
    if (pathname !== "/metrics" || !options.metrics) return text(404, "not found");
    const { metricsToken } = options;
    if (
      metricsToken !== undefined &&
      !isSameSecret(bearerToken(request.headers.authorization) ?? "", metricsToken)
    ) {
      response.setHeader("www-authenticate", "Bearer");
      return text(401, unauthorized);
    }
    return text(200, options.metrics.render());
  };
  const server = createServer({ headersTimeout: headTimeoutMs }, answer);
  return listening(server, options);
}
