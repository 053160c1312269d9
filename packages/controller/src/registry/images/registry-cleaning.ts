import { type Clock, type KubeClient, type Logger, silentLogger, systemClock } from "@spry/kube";
import { type ImagesInUse, imagesInUse, type PlatformImages } from "./images-in-use.ts";

export interface RegistryCleaningOptions {
  client: KubeClient;
  config: PlatformImages;
  /** The registry's part: removes what is not in use, by its own policy. */
  clean: (inUse: ImagesInUse) => Promise<{ manifests: number; blobs: number; bytes: number }>;
  /** Default 10 minutes. */
  intervalMs?: number;
  clock?: Clock;
  log?: Logger;
  signal: AbortSignal;
}

export interface RegistryCleaning {
  /** Asks for a cleaning soon, because room is short; asking often does no more. */
  request(): void;
  /** Resolves when the signal is aborted and nothing is under way. */
  ended: Promise<void>;
}

/** A registry that stays full is not cleaned all the time. */
const pauseMs = 10_000;

/** Cleans the registry at intervals and on its request. A failure is logged, and the cleaning is retried. */
export function startRegistryCleaning(options: RegistryCleaningOptions): RegistryCleaning {
  const { client, config, clean, signal, clock = systemClock, log = silentLogger } = options;
  const intervalMs = options.intervalMs ?? 600_000;
  let wake = () => {};
  let requested = false;

  async function cleanOnce(): Promise<void> {
    try {
      const result = await clean(await imagesInUse(client, config, signal));
      if (result.manifests + result.blobs > 0) log.info(result, "registry cleaned");
    } catch (error) {
      if (!signal.aborted) log.error({ error }, "cleaning the registry");
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (!requested) await waitFor(intervalMs, true);
      if (signal.aborted) return;
      requested = false;
      await cleanOnce();
      await waitFor(pauseMs, false);
    }
  }

  /** Resolves after the time or at the end; if it can be cut short, also on request. */
  function waitFor(ms: number, mayBeCutShort: boolean): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        signal.removeEventListener("abort", finish);
        wake = () => {};
        resolve();
      };
      const cancel = clock.after(ms, finish);
      signal.addEventListener("abort", finish, { once: true });
      if (mayBeCutShort) wake = finish;
      if (signal.aborted) finish();
    });
  }

  return {
    request() {
      requested = true;
      wake();
    },
    ended: run(),
  };
}
