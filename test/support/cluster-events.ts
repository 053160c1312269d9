/** Events on an installed cluster: a publisher in a Pod, a Function that remembers what it has got, and a Subscription between them. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { type Function, functions, subscriptions } from "@spry/function";
import { resources } from "@spry/kube";
import { type InstalledCluster } from "./installed-cluster.ts";
import { pushNatsImage } from "./nats-image.ts";
import { functionManifest } from "./platform.ts";
import { untilTrue } from "./until-true.ts";

export const system = "kyma-system";
const patienceMs = 120_000;

/** Keeps the ids that it has got, and how often; its one Pod is never killed. */
const source = `const seen = new Map();
let refuses = true;
module.exports = { main: (event) => {
  const id = event["ce-id"];
  if (event.data?.accept) refuses = false;
  if (event.data?.refuse && refuses) throw new Error("refused");
  if (id !== undefined) seen.set(id, (seen.get(id) ?? 0) + 1);
  else return JSON.stringify([...seen]);
} };`;

export class ClusterEvents {
  readonly #cluster: InstalledCluster;
  readonly namespace: string;

  constructor(cluster: InstalledCluster, namespace: string) {
    this.#cluster = cluster;
    this.namespace = namespace;
  }

  /** The cluster with Spry, so many NATS servers and a Function `sink` in the namespace, to which `orders` leads. */
  async install(natsReplicas: 1 | 3): Promise<void> {
    const cluster = this.#cluster;
    const { namespace } = this;
    await cluster.start({ moreImages: ["eventing"] });
    const values = path.join(cluster.scratch, "eventing.json");
    const image = await pushNatsImage(cluster.imageRegistry, cluster.scratch);
    const storage = { size: "1Gi", storageClassName: "of-the-test" };
    const eventing = { enabled: true, nats: { image, storage, replicas: natsReplicas } };
    writeFileSync(values, JSON.stringify({ eventing }));
    const { code, stderr } = await cluster.install("--values", values);
    if (code !== 0) throw new Error(stderr);
    await cluster.client.create(resources.namespaces, {
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    await cluster.startClient(namespace);
    // Once a year, so that all runs are those that are started by hand.
    const schedules = [{ name: "yearly", cron: "0 3 1 1 *" }];
    const manifest = functionManifest("sink", source, { schedules }, { namespace });
    const fn = JSON.parse(manifest) as Function;
    await cluster.client.apply(functions, fn, { fieldManager: "test" });
    await cluster.untilRunning(namespace, "sink");
    await this.subscribe("orders", "order.created.v1", { config: { maxInFlightMessages: "20" } });
  }

  async subscribe(name: string, type: string, more: object = {}): Promise<void> {
    const { client } = this.#cluster;
    const { namespace } = this;
    const sink = `http://sink.${namespace}.svc.cluster.local`;
    await client.create(subscriptions, {
      metadata: { name, namespace },
      spec: { sink, source: "shop", types: [type], ...more },
    });
    const isReady = async () =>
      (await client.get(subscriptions, { namespace, name })).status?.ready === true;
    await untilTrue(`Subscription ${name} is ready`, isReady, patienceMs);
  }

  /** Ends a Pod of Spry at once, by the name of its part: the first, or that of this name. */
  async killPod(part: string, pod?: string): Promise<void> {
    const { client } = this.#cluster;
    const labelSelector = `app.kubernetes.io/name=${part}`;
    const { items } = await client.list(resources.pods, { namespace: system, labelSelector });
    const name = pod ?? items[0]?.metadata.name ?? "";
    await client.delete(resources.pods, { namespace: system, name }, { gracePeriodSeconds: 0 });
  }

  /** Ends a Pod at once, one of those with these labels; returns its name, or undefined while there are none. */
  async killOneOf(
    labels: string,
    random: () => number,
    namespace = system,
  ): Promise<string | undefined> {
    const { client } = this.#cluster;
    const { items } = await client.list(resources.pods, { namespace, labelSelector: labels });
    const alive = items.filter(({ metadata }) => !metadata.deletionTimestamp);
    const name = alive[Math.floor(random() * alive.length)]?.metadata.name;
    if (name === undefined) return undefined;
    await client.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 });
    return name;
  }

  /** A Function that passes on the ids that it gets to `address`, and a Subscription `recorded` of the same events. */
  async recordAt(address: string): Promise<void> {
    const { namespace } = this;
    const recording = `module.exports = { main: async (event) => {
      const answer = await fetch("http://${address}", { method: "POST", body: event["ce-id"] });
      if (!answer.ok) throw new Error("not recorded");
    } };`;
    const manifest = functionManifest("recorder", recording, {}, { namespace });
    const fn = JSON.parse(manifest) as Function;
    await this.#cluster.client.apply(functions, fn, { fieldManager: "test" });
    await this.#cluster.untilRunning(namespace, "recorder");
    const sink = `http://recorder.${namespace}.svc.cluster.local`;
    const delivery = { maxBackoffSeconds: 2 };
    await this.subscribe("recorded", "order.created.v1", { sink, delivery });
  }

  /** Publishes from a Pod for so long; the ids that were accepted. */
  async publish(prefix: string, seconds: number): Promise<string[]> {
    const script = publishing(prefix, seconds);
    return JSON.parse(await this.#cluster.inClient(this.namespace, script)) as string[];
  }

  /** How often the sink has got each id. */
  async received(): Promise<Map<string, number>> {
    const text = await this.#cluster.call(this.namespace, "sink");
    return new Map(JSON.parse(text) as [string, number][]);
  }

  async untilDelivered(accepted: readonly string[]): Promise<void> {
    const areThere = async () => {
      const seen = await this.received();
      return accepted.every((id) => seen.has(id));
    };
    await untilTrue("all that was accepted has been delivered", areThere, patienceMs);
  }
}

const publishing = (prefix: string, seconds: number) => `
  const url = "http://eventing-publisher-proxy.${system}.svc.cluster.local/publish";
  const accepted = [];
  let next = 0;
  const end = Date.now() + ${seconds * 1000};
  const work = async () => {
    while (Date.now() < end) {
      const id = "${prefix}-" + next++;
      const body = JSON.stringify({ specversion: "1.0", id, source: "shop", type: "order.created.v1", data: {} });
      const headers = { "content-type": "application/cloudevents+json" };
      const response = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(15_000) }).catch(() => undefined);
      if (response?.status === 204) accepted.push(id);
      else await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  Promise.all([1, 2, 3, 4].map(work)).then(() => console.log(JSON.stringify(accepted)));`;
