/** Edits while everything that Spry stands on is killed in turn: none is lost, none is done twice, every request is answered. */
import { randomBytes } from "node:crypto";
import { annotations, type Function, functions, labels } from "@spry/function";
import { Informer, isNotFound, type Job, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Load } from "../support/client-pod.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest, pause } from "../support/platform.ts";

const reason = whyNoInstallation();
const cluster = new InstalledCluster();
const system = "kyma-system";
const namespace = `faults-${randomBytes(3).toString("hex")}`;
/** Functions that are edited in each round, one fault a round. `SPRY_TEST_FULL` is the whole of it: 50 edits. */
const size = process.env["SPRY_TEST_FULL"]
  ? { functions: 5, rounds: 10 }
  : { functions: 2, rounds: 8 };
const names = Array.from({ length: size.functions }, (_, index) => `fn-${index}`);
const controllerPods = { labelSelector: "app.kubernetes.io/name=serverless-controller" };
const registryPods = { labelSelector: "app.kubernetes.io/name=serverless-docker-registry" };
/** Longer than a restart, shorter than what makes a node be given up. */
const nodeProgramGoneMs = 5_000;
/**
 * A kubelet that starts takes what began less than ten seconds before it for not ready until it has probed it, and
 * a Service without other Pods refuses connections for that moment (kubelet 1.36, `prober_manager.go`,
 * `kubeletRestartGracePeriod`): it is Pods in service that it has to leave alone.
 */
const settledMs = 10_000;
/** Until the webhooks' Pods are back. */
const webhookPatienceMs = 180_000;
/** A node that has lost its power starts its first Pod when containerd has given up all that ran: 110 s for eleven Pods. */
const powerPatienceMs = 420_000;

async function leaderName(): Promise<string> {
  const { items } = await cluster.client.list(resources.leases, { namespace: system });
  return items[0]?.spec?.holderIdentity ?? "";
}

/** At once and without a word. */
async function kill(which: { labelSelector: string }, fits = (_name: string) => true) {
  const { items } = await cluster.client.list(resources.pods, { namespace: system, ...which });
  for (const { metadata } of items.filter((pod) => fits(pod.metadata.name ?? ""))) {
    const target = { namespace: system, name: metadata.name ?? "" };
    const options = { gracePeriodSeconds: 0 };
    await cluster.client.delete(resources.pods, target, options).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

/** Until every Pod of the Functions has been running for so long. */
async function settled(): Promise<void> {
  for (;;) {
    const { items } = await cluster.client.list(resources.pods, { namespace });
    const running = items.flatMap(
      ({ status }) => status?.containerStatuses?.[0]?.state?.running ?? [],
    );
    const begun = running.map(({ startedAt }) => Date.parse(String(startedAt)));
    if (begun.every((time) => Date.now() - time > settledMs)) return;
    await pause(500);
  }
}

const faults: Record<string, () => Promise<void>> = {
  "the leader": async () => {
    const leader = await leaderName();
    await kill(controllerPods, (name) => name === leader);
  },
  "the registry": () => kill(registryPods),
  "the other replica": async () => {
    const leader = await leaderName();
    await kill(controllerPods, (name) => name !== leader);
  },
  "the webhooks' certificate": async () => {
    const target = { namespace: system, name: "serverless-webhook" };
    await cluster.client.delete(resources.secrets, target);
  },
  "both replicas, and with them the webhooks": () => kill(controllerPods),
  kubelet: () => cluster.restartOnNode("kubelet", () => pause(nodeProgramGoneMs)),
  "the trust in the webhooks' certificate": async () => {
    const { items } = await cluster.client.list(resources.validatingWebhookConfigurations);
    for (const { metadata, webhooks = [] } of items) {
      const caBundle = "";
      const broken = webhooks.map((one) => ({
        ...one,
        clientConfig: { ...one.clientConfig, caBundle },
      }));
      const target = { name: metadata.name ?? "" };
      const patch = { webhooks: broken };
      await cluster.client.patch(resources.validatingWebhookConfigurations, target, patch);
    }
  },
  "the container runtime": () =>
    cluster.restartOnNode("containerd", () => pause(nodeProgramGoneMs)),
};

/** As a person or a pipeline does it when a webhook does not answer at this moment. */
async function apply(name: string, version: number, patienceMs = webhookPatienceMs): Promise<void> {
  const source = `module.exports = { main: () => "${name} version ${version}" };`;
  const manifest = functionManifest(name, source, {}, { namespace });
  for (const end = performance.now() + patienceMs; ;) {
    try {
      const fn = JSON.parse(manifest) as Function;
      await cluster.client.apply(functions, fn, { fieldManager: "test" });
      return;
    } catch (error) {
      if (performance.now() > end || !/webhook/.test(String(error))) throw error;
      await pause(500);
    }
  }
}

describe.skipIf(reason !== undefined)(`faults${reason ? ` (skipped: ${reason})` : ""}`, () => {
  const stop = new AbortController();
  /** Builds that ended well, by Function and build key. */
  const built = new Map<string, Set<string>>();
  let load: Load;

  beforeAll(async () => {
    await cluster.start();
    expect((await cluster.install()).stderr).toContain("Spry is installed");
    const level = { "pod-security.kubernetes.io/enforce": "restricted" };
    await cluster.client.create(resources.namespaces, {
      metadata: { name: namespace, labels: level },
    });
    const jobs = new Informer<Job>(cluster.client, resources.jobs, { namespace });
    jobs.onChange(({ object: { metadata, status } }) => {
      if (!status?.succeeded) return;
      const key = `${metadata.labels?.[labels.functionName]} ${metadata.annotations?.[annotations.buildKey]}`;
      built.set(key, (built.get(key) ?? new Set()).add(metadata.uid ?? ""));
    });
    void jobs.run(stop.signal);
    await cluster.startClient(namespace);
    for (const name of names) await apply(name, 0);
    for (const name of names) await cluster.untilRunning(namespace, name);
    load = await Load.start(cluster, namespace, names[0]!);
  }, 400_000);
  afterAll(async () => {
    stop.abort();
    await cluster.stop();
  }, 60_000);

  const rounds = Array.from({ length: size.rounds }, (_, index) => {
    const all = Object.keys(faults);
    return { version: index + 1, victim: all[index % all.length]! };
  });
  test.each(rounds)(
    "edit $version arrives at every Function while this is killed: $victim",
    async ({ version, victim }) => {
      if (victim === "kubelet") await settled();
      // The fault falls among the edits, and among the builds of those before.
      const half = Math.ceil(names.length / 2);
      for (const name of names.slice(0, half)) await apply(name, version);
      const fault = faults[victim]!();
      for (const name of names.slice(half)) await apply(name, version);
      await fault;
      for (const name of names) await cluster.untilRunning(namespace, name);
      for (const name of names) {
        const answer = () => cluster.call(namespace, name);
        const patience = { timeout: 60_000, interval: 500 };
        await expect.poll(answer, patience).toBe(`${name} version ${version}`);
      }
    },
    300_000,
  );

  test("every request was answered, and no version came back", async () => {
    const { ok, bad, answers, backwards } = await load.stop();
    expect(bad).toEqual([]);
    expect(backwards).toEqual([]);
    expect(ok).toBeGreaterThan(100);
    const versions = Array.from({ length: size.rounds + 1 }, (_, index) => index);
    expect(answers).toEqual(versions.map((version) => `${names[0]} version ${version}`));
  });

  test("the node loses its power among edits: all Pods come back, and the edits arrive", async () => {
    const version = size.rounds + 1;
    const half = Math.ceil(names.length / 2);
    for (const name of names.slice(0, half)) await apply(name, version);
    await cluster.losePower(() => pause(nodeProgramGoneMs));
    for (const name of names.slice(half)) await apply(name, version, powerPatienceMs);
    for (const name of names) await cluster.untilRunning(namespace, name, 300_000);
    for (const name of names) {
      // The caller's own Pod has to come back, too.
      const answer = () => cluster.call(namespace, name).catch(String);
      const patience = { timeout: 120_000, interval: 500 };
      await expect.poll(answer, patience).toBe(`${name} version ${version}`);
    }
  }, 900_000);

  test("every version was stored once and built once", async () => {
    const { items } = await cluster.client.list(functions, { namespace });
    expect(items.map(({ metadata }) => metadata.generation)).toEqual(
      names.map(() => size.rounds + 2),
    );
    expect([...built.values()].map(({ size: times }) => times)).toEqual(
      Array.from({ length: names.length * (size.rounds + 2) }, () => 1),
    );
  });
});
