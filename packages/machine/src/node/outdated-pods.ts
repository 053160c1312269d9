import {
  type Clock,
  controllerOf,
  type EventRecorder,
  type Informer,
  isConditionTrue,
  isConflict,
  isNotFound,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  type Pod,
  resources,
  sleep,
} from "@spry/kube";

export interface OutdatedPodsOptions {
  client: KubeClient;
  /** All Pods of this node. */
  pods: Informer<Pod>;
  events: EventRecorder;
  clock: Clock;
  log: Logger;
}

const askAgainMs = 250;
/** A replacement that is not ready by then holds up no others: they know no Service by its name. */
const replacementMs = 60_000;

/**
 * Pods that were taken over with a network that Pods no longer get. A kubelet makes such a Pod's containers again ("sandbox
 * changed"), all at once; here a controller's Pods are replaced one after the other, each when as many serve as before.
 */
export class OutdatedPods {
  readonly #options: OutdatedPodsOptions;

  constructor(options: OutdatedPodsOptions) {
    this.#options = options;
  }

  /** Whether a controller makes another Pod in its place. One of a Job, or of its own, is set up again where it is. */
  static isReplaced(pod: Pod | undefined): boolean {
    const controller = pod && controllerOf(pod);
    return controller !== undefined && controller.kind !== "Job";
  }

  /** Resolves when all of them are deleted, or with the signal. */
  async replace(uids: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const outdated = [...this.#options.pods.list()].filter(({ metadata }) =>
      uids.has(metadata.uid ?? ""),
    );
    const byController = Map.groupBy(outdated, (pod) => controllerOf(pod)?.uid ?? "");
    await Promise.all(
      [...byController].map(([controller, pods]) => this.#replaceAll(controller, pods, signal)),
    );
  }

  async #replaceAll(controller: string, outdated: readonly Pod[], signal: AbortSignal) {
    const { clock } = this.#options;
    const serving = this.#serving(controller);
    // Pods that are not ready go first.
    const inOrder = outdated.toSorted((a, b) => Number(isReady(a)) - Number(isReady(b)));
    for (const pod of inOrder) {
      const last = clock.elapsed() + replacementMs;
      while (this.#serving(controller) < serving && clock.elapsed() < last && !signal.aborted)
        await sleep(clock, askAgainMs, signal);
      if (signal.aborted) return;
      await this.#delete(pod);
    }
  }

  #serving(controller: string): number {
    return [...this.#options.pods.list()].filter(
      (pod) =>
        controllerOf(pod)?.uid === controller && !pod.metadata.deletionTimestamp && isReady(pod),
    ).length;
  }

  async #delete(pod: Pod): Promise<void> {
    const { client, events, log } = this.#options;
    const { namespace, name = "", uid = "" } = pod.metadata;
    const message = "The kind of network that Pods have has changed: the Pod is replaced.";
    log.info({ pod: keyOf(pod) }, message);
    events.record(resources.pods, pod, { type: "Normal", reason: "SandboxChanged", message });
    try {
      await client.delete(resources.pods, { namespace, name }, { preconditions: { uid } });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error))
        log.warn({ pod: keyOf(pod), error: messageOf(error) }, "replacing a Pod failed");
    }
  }
}

const isReady = ({ status }: Pod): boolean => isConditionTrue(status?.conditions as never, "Ready");
