import { type ContainerStatus, type Pod } from "@spry/kube";
import { type PodSandbox, type RecoveredPod } from "../sandbox/sandbox.ts";
import { ContainerRun, type ContainerRunOptions } from "./container-run.ts";
import { isDone, type PodFacts } from "./pod-status.ts";

type OfEach = Omit<ContainerRunOptions, "spec" | "isInit" | "reason" | "known">;

/** The containers of one Pod: which of them are to run now, and in which order they end. */
export class PodContainers {
  readonly #all: ContainerRun[];

  constructor(pod: Pod, ofEach: OfEach) {
    const { initContainers = [], containers = [] } = pod.spec ?? {};
    const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
    const reason = initContainers.length > 0 ? "PodInitializing" : "ContainerCreating";
    const create = (
      specs: typeof containers,
      isInit: boolean,
      statuses: readonly ContainerStatus[],
    ) =>
      specs.map((spec) => {
        const known = statuses.find(({ name }) => name === spec.name);
        return new ContainerRun({ ...ofEach, spec, isInit, reason, known });
      });
    this.#all = [
      ...create(initContainers, true, initContainerStatuses),
      ...create(containers, false, containerStatuses),
    ];
  }

  [Symbol.iterator](): Iterator<ContainerRun> {
    return this.#all[Symbol.iterator]();
  }

  /** Of a Pod with one container: it may become one that waits, if that fits. */
  get only(): ContainerRun | undefined {
    const [container, ...more] = this.#all;
    return more.length === 0 ? container : undefined;
  }

  get areAllRunning(): boolean {
    return this.#all.every(({ isRunning }) => isRunning);
  }

  get isAnyRunning(): boolean {
    return this.#all.some(({ isRunning }) => isRunning);
  }

  named(name: string): ContainerRun | undefined {
    return this.#all.find((container) => container.name === name);
  }

  usesImage(digest: string): boolean {
    return this.#all.some((container) => container.usesImage(digest));
  }

  /** What runs already, from an earlier agent's time. */
  adopt({ sandbox, containers }: RecoveredPod, pod: Pod): void {
    const known = [
      ...(pod.status?.initContainerStatuses ?? []),
      ...(pod.status?.containerStatuses ?? []),
    ];
    for (const { name, run, container } of containers) {
      const status = known.find((each) => each.name === name);
      const mine = this.named(name);
      // Its end has been reported already.
      if (status?.state?.terminated && status.restartCount >= run) continue;
      if (mine) mine.adopt(container, run, sandbox, status);
      else container.kill("SIGKILL");
    }
  }

  /** Init containers one after the other, then all the others. Sidecars keep running alongside them. */
  nextToRun(): ContainerRun[] {
    const due: ContainerRun[] = [];
    // Once the Pod's own containers have begun, ordinary init containers are not run again.
    const initialized = this.#all.some(
      (container) => !container.isInit && (container.isRunning || container.exitCode !== undefined),
    );
    for (const container of this.#all) {
      if (container.isInit && initialized && !container.isSidecar) continue;
      due.push(container);
      if (container.isInit && !initialized && !isDone(container.spec, container.status()))
        return due;
    }
    return due;
  }

  mayRestart(container: ContainerRun, pod: Pod): boolean {
    if (container.isSidecar) return !this.#isMainDone(pod);
    const policy = pod.spec?.restartPolicy ?? "Always";
    // An init container that has succeeded is done, whatever the policy.
    if (container.exitCode === 0) return policy === "Always" && !container.isInit;
    return policy !== "Never";
  }

  /** Whether all of the Pod's own containers have ended for good. */
  #isMainDone(pod: Pod): boolean {
    return this.#all.every(
      (container) =>
        container.isInit ||
        (!container.isRunning &&
          container.exitCode !== undefined &&
          !this.mayRestart(container, pod)),
    );
  }

  /** Sidecars do not outlive the Pod's own containers; in reverse order, without waiting for their end. */
  stopSidecarsAtEnd(pod: Pod, graceMs: number, place: PodSandbox): void {
    const sidecars = this.#all.filter(({ isSidecar, isRunning }) => isSidecar && isRunning);
    if (sidecars.length === 0 || !this.#isMainDone(pod)) return;
    for (const sidecar of sidecars.reverse()) void sidecar.stop(graceMs, place);
  }

  /** Sidecars last, in reverse order. */
  async stopAll(graceMs: number, place: PodSandbox): Promise<void> {
    const main = this.#all.filter(({ isSidecar }) => !isSidecar);
    await Promise.all(main.map((container) => container.stop(graceMs, place)));
    for (const sidecar of this.#all.filter((each) => each.isSidecar).reverse())
      await sidecar.stop(graceMs, place);
  }

  statuses(): Pick<PodFacts, "initContainers" | "containers"> {
    const ofKind = (isInit: boolean) =>
      this.#all.filter((each) => each.isInit === isInit).map((each) => each.status());
    return { initContainers: ofKind(true), containers: ofKind(false) };
  }

  /** Lets go of them without touching their processes. */
  release(): void {
    for (const container of this.#all) container.release();
  }
}
