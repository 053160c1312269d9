import { serverlesses } from "@spry/controller";
import { Informer, type KubeClient, type Logger } from "@spry/kube";

/** The collector that the Serverless object in effect names (`tracing.endpoint`), as it is at the moment; undefined without one. */
export function watchTraceEndpoint(
  client: KubeClient,
  log: Logger,
  signal: AbortSignal,
): () => string | undefined {
  const cache = new Informer(client, serverlesses, { log, mayBeMissing: true });
  void cache.run(signal);
  return () => {
    const inEffect = [...cache.list()].find(({ status }) => status?.served === "True");
    return inEffect?.status?.tracingEndpoint || undefined;
  };
}
