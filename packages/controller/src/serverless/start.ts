import {
  type Clock,
  Controller,
  type ControllerMetrics,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
  silentLogger,
  systemClock,
} from "@spry/kube";
import { names } from "@spry/function";
import { type ServiceLookup } from "@spry/source";
import { type ControllerConfig, settingsOf } from "../config.ts";
import { digestOf } from "../digest.ts";
import { startFunctionController } from "../start.ts";
import { type Configuration, configurationOf } from "./configuration.ts";
import { servedOf } from "./election.ts";
import { type Liveness } from "./liveness.ts";
import { serverlessReconciler } from "./reconciler.ts";
import { type Remarks } from "./remarks.ts";
import { type RegistryAccess } from "../registry/registry-secret.ts";
import { serverlesses } from "./types.ts";

export interface ServerlessControllerOptions {
  client: KubeClient;
  /** What the installation says; the served Serverless object comes on top. */
  config: ControllerConfig;
  /** The platform's own registry, when it has one. */
  internalRegistry?: RegistryAccess | undefined;
  /** See `FunctionControllerOptions`. */
  services?: ServiceLookup | undefined;
  clock?: Clock;
  log?: Logger;
  metrics?: ControllerMetrics;
  /** Is given the control loops to watch. */
  liveness?: Liveness;
  /** What other parts of the platform have to say to operators; see `Remarks`. */
  remarks?: Remarks;
  signal: AbortSignal;
}

/**
 * Keeps the Function Controller running under the configuration that the served Serverless object asks for, and
 * reports in its status what is in effect. A new configuration ends the current passes and starts again, from
 * nothing but the API. Rejects when the Function Controller fails. One instance at a time may run in a cluster.
 */
export async function startServerlessController(
  options: ServerlessControllerOptions,
): Promise<void> {
  const { client, signal, clock = systemClock, log = silentLogger, metrics } = options;
  const { liveness } = options;
  const telling = { clock, log, ...(metrics ? { metrics } : {}) };
  const informer = new Informer(client, serverlesses, { clock, log });
  const namespace = settingsOf(options.config).baseNamespace;
  const choices = new Informer(client, resources.secrets, {
    namespace,
    fieldSelector: `metadata.name=${names.remoteRegistrySecret}`,
    clock,
    log,
  });
  const stop = new AbortController();
  const running = AbortSignal.any([signal, stop.signal]);
  const runner = new Runner(running, (config, own) =>
    startFunctionController({
      client,
      config,
      internalRegistry: options.internalRegistry,
      services: options.services,
      ...telling,
      ...(liveness ? { liveness } : {}),
      signal: own,
    }),
  );
  const controller = new Controller({
    name: serverlesses.plural,
    reconcile: serverlessReconciler({
      client,
      informer,
      base: options.config,
      namespace,
      chosen: () => [...choices.list()][0],
      internalRegistry: options.internalRegistry,
      use: (config) => runner.use(config),
      remarks: () => options.remarks?.list() ?? [],
      clock,
      log,
    }),
    workers: 1,
    ...telling,
  });
  // All objects are looked at together: which is served depends on the others.
  controller.watch(informer, () => [key]);
  controller.watch(choices, () => [key]);
  options.remarks?.onChange(() => controller.enqueue(key));
  controller.enqueue(key);
  liveness?.watch(controller, running);
  const failed = runner.failed.finally(() => stop.abort());
  await Promise.race([
    failed,
    Promise.all([informer.run(running), choices.run(running), controller.run(running)]).then(() =>
      runner.ended(),
    ),
  ]);
}

const key = "serverless";

/** Runs one Function Controller at a time, and a new one when the configuration is another. */
class Runner {
  /** Rejects with the first failure. */
  readonly failed: Promise<never>;
  readonly #fail: (error: unknown) => void;
  readonly #signal: AbortSignal;
  readonly #start: (config: ControllerConfig, signal: AbortSignal) => Promise<void>;
  #current: { digest: string; stop: AbortController } | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(
    signal: AbortSignal,
    start: (config: ControllerConfig, signal: AbortSignal) => Promise<void>,
  ) {
    this.#signal = signal;
    this.#start = start;
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.failed = promise;
    this.#fail = reject;
  }

  use(config: ControllerConfig): void {
    const digest = digestOf(config);
    if (this.#current?.digest === digest || this.#signal.aborted) return;
    this.#current?.stop.abort();
    const stop = new AbortController();
    this.#current = { digest, stop };
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    // The next begins when the one before has ended its passes: never are there two.
    this.#last = this.#last
      .then(() => (signal.aborted ? undefined : this.#start(config, signal)))
      .catch((error: unknown) => this.#fail(error));
  }

  ended(): Promise<void> {
    return this.#last;
  }
}

/** For what is not the leader's alone: admission, log level, liveness. `onChange` gets every usable configuration. */
export async function watchConfiguration(options: {
  client: KubeClient;
  config: ControllerConfig;
  onChange: (configuration: Configuration) => void;
  log?: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { client, config, onChange, log = silentLogger, signal } = options;
  const namespace = settingsOf(config).baseNamespace;
  const informer = new Informer(client, serverlesses, { namespace, log });
  let last = "";
  const look = () => {
    const served = servedOf([...informer.list()], namespace);
    const result = configurationOf(config, served?.spec ?? {});
    if ("errors" in result) return;
    const digest = digestOf(result.configuration);
    if (digest === last) return;
    last = digest;
    onChange(result.configuration);
  };
  informer.onChange(look);
  informer.synced.then(look, (error: unknown) =>
    log.error({ error: messageOf(error) }, "reading the configuration"),
  );
  await informer.run(signal);
}
