import {
  domainMappings,
  type Function,
  functions,
  knative,
  knativeLabels,
  labels,
  type Revision,
} from "@spry/function";
import {
  type Clock,
  Informer,
  type KubeClient,
  type KubeObject,
  type Logger,
  resources,
  sleep,
  StatusError,
} from "@spry/kube";
import { addressesOfSlice } from "./exposure/key-reach.ts";
import { Callers } from "./inside/callers.ts";
import { type InsideOptions } from "./inside/entrances.ts";
import { serviceOfSlice, withoutRefused } from "./routing/endpoints.ts";

/** Routes must be current soon after the API server is back. */
const maxRetryMs = 1_000;
const probePauseMs = 250;

/** What the gateway watches. Informers start at once. */
export function startSources(
  client: KubeClient,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
  inside: InsideOptions | undefined,
) {
  const watching = { clock, log, maxRetryMs };
  // Their definitions may be missing for long.
  const optional = { clock, log: withoutRepetition(log), maxRetryMs };
  const sources = {
    // Only the Services of Functions: no other Service of a cluster may be reachable from outside. Those of a Revision have a
    // Function's labels, too, but what is demanded of its callers is known by its own name.
    services: new Informer(client, resources.services, {
      ...watching,
      labelSelector: `${labels.functionName},!${knativeLabels.serviceType}`,
    }),
    slices: new Informer(client, resources.endpointSlices, {
      ...watching,
      indexes: { service: serviceOfSlice, address: addressesOfSlice },
      transform: withoutRefused,
    }),
    functions: new Informer(client, functions, {
      ...optional,
      indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ""] },
      transform: slimFunction,
    }),
    routes: new Informer(client, knative.routes, { ...optional, resting: true }),
    revisions: new Informer(client, knative.revisions, { ...optional, transform: slim }),
    domainMappings: new Informer(client, domainMappings, optional),
  };
  for (const informer of Object.values(sources)) void informer.run(signal);
  const isMachine = inside?.isMachine;
  const callers = new Callers({
    ...sources,
    client,
    clock,
    log: optional.log,
    signal,
    ...(isMachine && { isMachine }),
  });
  // Functions only explain: a cluster without their definition still has routes.
  const ready = (async () => {
    await sources.services.synced;
    await sources.slices.synced;
    await syncedOrMissing(client, sources.revisions, clock, signal);
    await syncedOrMissing(client, sources.routes, clock, signal);
    await syncedOrMissing(client, sources.domainMappings, clock, signal);
    await syncedOrMissing(client, callers.policies, clock, signal);
  })();
  return { ...sources, callers, ready };
}

/** Sources may be large, and only what explains a missing Pod, what labels Pods have, and the limit of time is of use here. */
function slimFunction({ metadata, spec, status }: Function): Function {
  const { replicas, scaleConfig, concurrency, traffic, labels: ofPods, timeoutSeconds } = spec;
  const env = spec.env?.filter(({ name }) => name === "FUNC_TIMEOUT");
  const kept = { replicas, scaleConfig, concurrency, traffic, labels: ofPods, timeoutSeconds, env };
  return { metadata, spec: kept, status } as Function;
}

/** Without Pod templates, of which there may be thousands. */
function slim({ metadata, spec, status }: Revision): Revision {
  const { containerConcurrency, timeoutSeconds, responseStartTimeoutSeconds, idleTimeoutSeconds } =
    spec;
  const limits = {
    containerConcurrency,
    timeoutSeconds,
    responseStartTimeoutSeconds,
    idleTimeoutSeconds,
  };
  const conditions = status?.conditions;
  // For NetworkPolicies: the first port is the one that is called.
  const [port] = spec.containers?.flatMap(({ ports = [] }) => ports) ?? [];
  const containers = port ? [{ ports: [port] }] : [];
  return { metadata, spec: { ...limits, containers }, status: { conditions } } as Revision;
}

/** Resolves when the informer has its first list, or when the API server does not serve the resource to the gateway. */
async function syncedOrMissing<T extends KubeObject>(
  client: KubeClient,
  informer: Informer<T>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!informer.hasSynced && !signal.aborted) {
    try {
      await client.list(informer.resource, { fieldSelector: "metadata.name=served", signal });
    } catch (error) {
      if (error instanceof StatusError && [403, 404].includes(error.status.code)) return;
    }
    await Promise.race([informer.synced, sleep(clock, probePauseMs, signal)]);
  }
}

/** A warning that is the same as the one before is not logged again. */
function withoutRepetition(log: Logger): Logger {
  let last = "";
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    error: (fields, message) => log.error(fields, message),
    warn(fields, message) {
      const text = `${String((fields as { error?: unknown }).error)} ${message}`;
      if (text !== last) log.warn(fields, message);
      last = text;
    },
    child: (fields) => withoutRepetition(log.child(fields)),
  };
}
