import { knative } from "@spry/function";
import { Informer, resources, silentLogger, systemClock } from "@spry/kube";
import { installServing, type Ownership, servingOwnership } from "./definitions.ts";
import { type ServingOptions } from "./options.ts";
import { createSettingsMaps } from "./settings/create-maps.ts";
import { startServing } from "./start.ts";

export interface KeepServingOptions extends ServingOptions {
  /** Whose Knative Serving this cluster has, now and whenever it is another one. */
  onOwnership?: (ownership: Ownership) => void;
}

/**
 * Installs the definitions and serves, as long as no other installation of Knative Serving is there: then the room is off, and
 * it is on again when the definitions are ours. Definitions that are deleted are installed by the next leader.
 */
export async function keepServing(options: KeepServingOptions): Promise<void> {
  const { client, signal, clock = systemClock, log = silentLogger, onOwnership } = options;
  const { plural, group } = knative.services;
  const definitions = new Informer(client, resources.customResourceDefinitions, {
    fieldSelector: `metadata.name=${plural}.${group}`,
    clock,
    log,
  });
  let current: { stop: AbortController; ended: Promise<void> } | undefined;
  let reported: Ownership | undefined;
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});

  async function follow(): Promise<void> {
    const ownership = await servingOwnership(client);
    if (ownership !== reported) onOwnership?.((reported = ownership));
    if (ownership === "ours" && !current) {
      await createSettingsMaps(client);
      const stop = new AbortController();
      const ended = startServing({ ...options, signal: AbortSignal.any([signal, stop.signal]) });
      ended.catch(failed.reject);
      current = { stop, ended };
    } else if (ownership !== "ours" && current) {
      log.warn(
        { ownership },
        "Knative Serving now belongs to another installation, stopping our own",
      );
      const { stop, ended } = current;
      current = undefined;
      stop.abort();
      await ended;
    }
  }

  await installServing(client);
  let last = follow();
  definitions.onChange(() => {
    last = last.then(follow).catch(failed.reject);
  });
  await Promise.race([failed.promise, Promise.all([last, definitions.run(signal)])]);
  await current?.ended;
}
