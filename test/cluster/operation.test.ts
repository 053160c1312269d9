/** Controllers that lead in turn on a real control plane: no action is missed and none is done twice. */
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Function, functions, labels } from "@spry/function";
import {
  getCondition,
  Informer,
  type Job,
  type KubeObject,
  type Resource,
  resources,
} from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  controllerConfig,
  ControllerProcess,
  imageOf,
  installBase,
  standInForNodes,
} from "../support/controllers.ts";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

/** On a given cluster there may be a controller already. */
const reason = process.env["KUBECONFIG"]
  ? "needs a control plane without nodes and controller of its own"
  : whyNoCluster();
const cluster = new RealCluster();
const namespace = `hand-over-${randomBytes(3).toString("hex")}`;
const patience = { timeout: 180_000, interval: 250 };
const count = 50;
/** Events come in bursts on a busy machine. */
const quietMs = 5_000;
const lease = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 500 };

const nameOf = (index: number) => `fn-${index}`;
const names = Array.from({ length: count }, (_, index) => nameOf(index));

async function apply(from: number, to: number, code: string): Promise<void> {
  for (const name of names.slice(from, to)) {
    const source = `${code} of ${name}`;
    const spec = { runtime: "nodejs24", source: { inline: { source } } } as const;
    const fn = { metadata: { namespace, name }, spec } as Function;
    await cluster.client.apply(functions, fn, { fieldManager: "test" });
  }
}

const list = async <T extends KubeObject>(resource: Resource<T>) =>
  (await cluster.client.list(resource, { namespace, labelSelector: labels.functionName })).items;

async function running(): Promise<number> {
  const { items } = await cluster.client.list(functions, { namespace });
  return items.filter(({ metadata, status }) => {
    const condition = getCondition(status?.conditions, "Running");
    return condition?.status === "True" && condition.observedGeneration === metadata.generation;
  }).length;
}

describe.skipIf(reason !== undefined)(
  `replicas of the controller${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const stop = new AbortController();
    /** All builds that ever were, by Function. */
    const builds = new Map<string, Set<string>>();
    const started: ControllerProcess[] = [];
    const start = (identity: string) => {
      const kubeconfig = cluster.own?.kubeconfig ?? "";
      const one = new ControllerProcess(kubeconfig, identity, { config: controllerConfig, lease });
      started.push(one);
      return one;
    };
    let standIn: Promise<void>;

    beforeAll(async () => {
      await cluster.start();
      const { client } = cluster;
      await installBase(client);
      await client.apply(resources.namespaces, { metadata: { name: namespace } });
      const jobs = new Informer<Job>(client, resources.jobs, { namespace });
      jobs.onChange(({ object }) => {
        const name = object.metadata.labels?.[labels.functionName] ?? "";
        const uids = builds.get(name) ?? new Set();
        builds.set(name, uids.add(object.metadata.uid ?? ""));
      });
      void jobs.run(stop.signal);
      standIn = standInForNodes(client, stop.signal);
    });
    afterAll(async () => {
      for (const each of started) await each.end("SIGKILL");
      stop.abort();
      await standIn;
      await cluster.stop();
    });

    test(`of ${count} Functions each is built and deployed once, while the leader is killed, then told to stop`, async () => {
      const first = start("first");
      await first.leads();
      const second = start("second");
      await apply(0, 20, "code");
      await first.end("SIGKILL");
      await apply(20, 30, "code");
      await second.leads();
      const third = start("third");
      await apply(30, 40, "code");
      // It answers: what follows is measured without its start.
      await third.usage();
      const told = performance.now();
      await Promise.all([second.end("SIGTERM"), third.leads()]);
      // It gave the lease back: no replica waited for its end.
      expect(performance.now() - told).toBeLessThan(lease.leaseDurationMs);
      await apply(40, count, "code");
      await expect.poll(running, patience).toBe(count);

      expect([...builds.keys()].toSorted()).toEqual(names.toSorted());
      expect([...builds.values()].map(({ size }) => size)).toEqual(names.map(() => 1));
      for (const resource of [resources.deployments, resources.services, resources.configMaps]) {
        const children = await list<KubeObject>(resource);
        expect(children.map(({ metadata }) => metadata.name ?? "").toSorted()).toEqual(
          names.toSorted(),
        );
      }
      // A second version of a Deployment would be a second ReplicaSet.
      expect(await list(resources.replicaSets)).toHaveLength(count);
      const images = (await list(resources.deployments)).map(
        ({ metadata, spec }) =>
          spec?.template.spec?.containers[0]?.image === imageOf(namespace, metadata.name ?? ""),
      );
      expect(images).not.toContain(false);
    }, 300_000);

    test("a leader that stood still ends when it goes on, and its successor's work stays", async () => {
      const third = started[2]!;
      const fourth = start("fourth");
      third.pause();
      await fourth.leads();
      await apply(0, 10, "other code");
      third.resume();
      await third.exited;
      expect(third.errors).toContain("could not be renewed in time");
      await expect.poll(running, patience).toBe(count);
      const sizes = names.map((name) => builds.get(name)?.size);
      expect(sizes).toEqual(names.map((_, index) => (index < 10 ? 2 : 1)));
      const { spec } = await cluster.client.get(resources.leases, {
        namespace: "kyma-system",
        name: "controller",
      });
      expect(spec?.holderIdentity).toBe("fourth");
    }, 300_000);

    test("an idle controller writes nothing", async () => {
      const fourth = started[3]!;
      // What the last pods' changes bring, and Events on their way.
      let before = await fourth.usage();
      const settled = async () => {
        const last = before;
        await pause(quietMs);
        before = await fourth.usage();
        return before.writes + before.events - last.writes - last.events;
      };
      await expect.poll(settled, { timeout: 120_000 }).toBe(0);
      await expect
        .poll(async () => (await fourth.usage()).leaseWrites - before.leaseWrites, patience)
        .toBeGreaterThan(20);
      const after = await fourth.usage();
      expect(after.writes - before.writes).toBe(0);
      expect(after.events - before.events).toBe(0);
    }, 300_000);
  },
);
