import { definitionOwner, withPorts } from "@spry/exposure";
import {
  type ApiRule,
  apiRules,
  certificatesSecretName,
  type IstioGateway,
  istioGateways,
} from "@spry/function";
import {
  type Clock,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
  type Secret,
  type Service,
  sleep,
} from "@spry/kube";
import { addressesOfService } from "./key-reach.ts";

const missingPauseMs = 1_000;
const ownerPauseMs = 60_000;
const maxRetryMs = 1_000;

/** What the hosts of APIRules follow from. */
export interface ExposureSources {
  apiRules: Informer<ApiRule>;
  gateways: Informer<IstioGateway>;
  /** All of them: an APIRule may name any. */
  services: Informer<Service>;
  /** The one Secret that the gateway may read. */
  certificates: Informer<Secret>;
}

export interface ExposureWatch {
  client: KubeClient;
  /** Where the Secret of certificates is. */
  namespace: string;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

/**
 * Watches them as long as the definition of APIRules is ours: those of another installation (Kyma's API Gateway module)
 * are not the gateway's. `use` gets the sources when they are complete, and undefined when they do not count any more.
 * @returns resolves when it is known for the first time what there is
 */
export function watchExposure(
  watch: ExposureWatch,
  use: (sources: ExposureSources | undefined) => void,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  void (async () => {
    const { client, clock, log, signal } = watch;
    let reported = "";
    while (!signal.aborted) {
      const owner = await definitionOwner(client).catch((error: unknown) => {
        const why = messageOf(error);
        if (why !== reported) log.warn({ error: why }, "looking for APIRules failed, trying again");
        reported = why;
        return "unknown" as const;
      });
      if (owner === "ours") await serve(watch, use, resolve);
      // Without rights to look, or without an answer, nothing is exposed; what else there is must be served.
      else if (owner !== "unknown" || reported.includes("forbidden")) resolve();
      const pauseMs = owner === "other" ? ownerPauseMs : missingPauseMs;
      await sleep(clock, pauseMs, signal);
    }
    resolve();
  })();
  return promise;
}

/** Until the definition is not ours any more. */
async function serve(
  { client, namespace, clock, log, signal: outer }: ExposureWatch,
  use: (sources: ExposureSources | undefined) => void,
  ready: () => void,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([outer, stop.signal]);
  const watching = { clock, log, maxRetryMs };
  const sources: ExposureSources = {
    apiRules: new Informer(client, apiRules, { ...watching, mayBeMissing: true }),
    gateways: new Informer(client, istioGateways, { ...watching, mayBeMissing: true }),
    services: new Informer(client, resources.services, {
      ...watching,
      transform: withPorts,
      indexes: { address: addressesOfService },
    }),
    certificates: new Informer(client, resources.secrets, {
      ...watching,
      namespace,
      fieldSelector: `metadata.name=${certificatesSecretName}`,
    }),
  };
  const all = Object.values(sources) as Informer<Service>[];
  for (const informer of all) void informer.run(signal);
  await Promise.race([
    // The cluster may not serve Gateways: without one, no APIRule has a host.
    Promise.all([sources.apiRules.synced, sources.services.synced, sources.certificates.synced]),
    aborted(signal),
  ]);
  if (!signal.aborted) use(sources);
  await Promise.race([sources.gateways.synced, sleep(clock, missingPauseMs, signal)]);
  ready();
  for (let owner = "ours"; owner === "ours" && !signal.aborted;) {
    await sleep(clock, ownerPauseMs, signal);
    owner = await definitionOwner(client).catch(() => "ours");
  }
  stop.abort();
  use(undefined);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
