import { setTimeout as pause } from "node:timers/promises";
import {
  type KubeClient,
  type KubeObject,
  isNotFound,
  type Pod,
  type Resource,
  resources,
  systemClock,
  timestamp,
} from "@spry/kube";
import { endPod } from "./node.ts";
import { type View } from "./observer.ts";

/** Which Pods a cue is for. */
export interface PodFilter {
  image?: string;
  /** Of an Indexed Job. */
  index?: number;
  label?: Record<string, string>;
  ready?: boolean;
  phase?: string;
}

const cueTimeoutMs = 60_000;
const pollMs = 30;
let addresses = 0;

/** One case on one side: its namespace, and the hands that write what people and the node write. */
export class Scene {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly view: View;

  constructor(client: KubeClient, namespace: string, view: View) {
    this.client = client;
    this.namespace = namespace;
    this.view = view;
  }

  async create(resource: Resource, object: object): Promise<KubeObject> {
    const { metadata, ...rest } = object as KubeObject;
    return this.client.create(resource, {
      ...rest,
      metadata: { ...metadata, namespace: this.namespace },
    });
  }

  async patch(
    resource: Resource,
    name: string,
    patch: object,
    subresource?: string,
  ): Promise<void> {
    await this.client.patch(resource, this.#at(name), patch, {
      type: "strategic",
      ...(subresource ? { subresource } : {}),
    });
  }

  async get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.client.get(resource, this.#at(name));
  }

  async delete(
    resource: Resource,
    name: string,
    propagationPolicy: "Foreground" | "Background" | "Orphan" = "Background",
  ): Promise<void> {
    await this.client.delete(resource, this.#at(name), { propagationPolicy });
  }

  /** Waits for what a case relies on before it goes on. */
  async until(
    what: string,
    holds: () => Promise<boolean>,
    timeoutMs = cueTimeoutMs,
  ): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!(await holds())) {
      if (performance.now() > deadline)
        throw new Error(`${this.namespace}: waited in vain for ${what}`);
      await pause(pollMs);
    }
  }

  async untilGone(resource: Resource, name: string): Promise<void> {
    await this.until(`the end of ${resource.kind} ${name}`, () =>
      this.get(resource, name).then(() => false, isNotFound),
    );
  }

  /** So many Pods that are bound, not on their way out and as the filter says: the oldest. */
  async pods(count: number, filter: PodFilter = {}): Promise<Pod[]> {
    let found: Pod[] = [];
    await this.until(`${count} Pods like ${JSON.stringify(filter)}`, async () => {
      const { items } = await this.client.list(resources.pods, { namespace: this.namespace });
      found = items.filter((pod) => isBound(pod) && fits(pod, filter));
      return found.length >= count;
    });
    const ageOf = ({ metadata }: Pod) => `${metadata.creationTimestamp} ${metadata.name}`;
    return found.sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1)).slice(0, count);
  }

  async ready(count: number, filter: PodFilter = {}): Promise<void> {
    for (const pod of await this.pods(count, { ready: false, phase: "Pending", ...filter })) {
      addresses++;
      const podIP = pod.status?.podIP ?? `10.244.${addresses >> 8}.${addresses & 255}`;
      await this.#write(pod, {
        phase: "Running",
        podIP,
        podIPs: [{ ip: podIP }],
        startTime: now(),
        conditions: [is("Ready", "True"), is("ContainersReady", "True")],
        containerStatuses: containersOf(pod, { running: { startedAt: now() } }, true),
      });
    }
  }

  async unready(count: number, filter: PodFilter = {}): Promise<void> {
    for (const pod of await this.pods(count, { ready: true, ...filter })) {
      const conditions = [is("Ready", "False", "ContainersNotReady")];
      await this.#write(pod, { conditions });
    }
  }

  async succeed(count: number, filter: PodFilter = {}): Promise<void> {
    for (const pod of await this.pods(count, { ...filter, phase: filter.phase ?? "Pending" }))
      await this.#end(pod, "Succeeded", 0);
  }

  async fail(
    count: number,
    filter: PodFilter = {},
    exitCode = 1,
    conditions: object[] = [],
  ): Promise<void> {
    for (const pod of await this.pods(count, { ...filter, phase: filter.phase ?? "Pending" }))
      await this.#end(pod, "Failed", exitCode, conditions);
  }

  /** Ends Pods that linger on their way out. */
  async finish(count: number): Promise<void> {
    const { items } = await this.client.list(resources.pods, { namespace: this.namespace });
    const ending = items.filter(({ metadata }) => metadata.deletionTimestamp);
    for (const pod of ending.slice(0, count)) await endPod(this.client, pod);
  }

  async #end(pod: Pod, phase: string, exitCode: number, conditions: object[] = []): Promise<void> {
    const terminated = {
      exitCode,
      startedAt: now(),
      finishedAt: now(),
      reason: exitCode ? "Error" : "Completed",
    };
    await this.#write(pod, {
      phase,
      startTime: now(),
      conditions: [is("Ready", "False", "PodCompleted"), ...conditions],
      containerStatuses: containersOf(pod, { terminated }, false),
    });
  }

  async #write({ metadata }: Pod, status: object): Promise<void> {
    await this.patch(resources.pods, metadata.name ?? "", { status }, "status");
  }

  #at(name: string) {
    return { namespace: this.namespace, name };
  }
}

const now = () => timestamp(systemClock);

function is(type: string, status: string, reason?: string): object {
  return { type, status, lastTransitionTime: now(), ...(reason ? { reason } : {}) };
}

function containersOf({ spec }: Pod, state: object, ready: boolean): object[] {
  return (spec?.containers ?? []).map(({ name, image }) => ({
    name,
    image,
    imageID: "",
    ready,
    started: ready,
    restartCount: 0,
    state,
  }));
}

function isBound({ spec, metadata }: Pod): boolean {
  return spec?.nodeName !== undefined && metadata.deletionTimestamp === undefined;
}

function fits(
  { metadata, spec, status }: Pod,
  { image, index, label, ready, phase }: PodFilter,
): boolean {
  const isReady =
    status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
  return (
    (image === undefined || spec?.containers[0]?.image === image) &&
    (index === undefined ||
      metadata.annotations?.["batch.kubernetes.io/job-completion-index"] === String(index)) &&
    Object.entries(label ?? {}).every(([name, value]) => metadata.labels?.[name] === value) &&
    (ready === undefined || isReady === ready) &&
    (phase === undefined || (status?.phase ?? "Pending") === phase)
  );
}
