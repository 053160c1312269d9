import { type Transport, transportOf } from "../transport.ts";
import { type PrometheusMetrics } from "./controller-metrics.ts";

/** A transport that counts what goes through it. */
export function measuredTransport(
  transport: Transport,
  metrics: Pick<PrometheusMetrics, "requested">,
): Transport {
  const measured =
    <Q extends { method: string }, R extends { status: number }>(
      send: (request: Q) => Promise<R>,
    ) =>
    async (request: Q): Promise<R> => {
      const startedAt = performance.now();
      const tell = (code: string) =>
        metrics.requested(request.method, code, (performance.now() - startedAt) / 1000);
      try {
        const response = await send(request);
        tell(String(response.status));
        return response;
      } catch (error) {
        // client-go's word for a request without an answer.
        tell("<error>");
        throw error;
      }
    };
  return transportOf(measured(transport), transport.ask && measured(transport.ask));
}
