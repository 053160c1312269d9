import { servedOf, serverlesses } from "@spry/controller";
import { Informer, type KubeClient, type Logger } from "@spry/kube";

/**
 * The collector that the Serverless object in effect names (`tracing.endpoint`), as it is at the moment; undefined without one.
 * `namespace` is the platform's own: an object of another one may not say where everyone's traces go.
 */
export function watchTraceEndpoint(
  client: KubeClient,
  namespace: string,
  log: Logger,
  signal: AbortSignal,
): () => string | undefined {
  const cache = new Informer(client, serverlesses, { log, mayBeMissing: true });
  void cache.run(signal);
  return () => {
    const inEffect = servedOf([...cache.list()], namespace);
    if (inEffect?.status?.served !== "True") return undefined;
    return inEffect.status.tracingEndpoint || undefined;
  };
}
