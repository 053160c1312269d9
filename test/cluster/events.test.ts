/** Events on a real cluster: from a publisher in a Pod through NATS to a Function, while what keeps and delivers them is killed. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { serverlesses } from "@spry/controller";
import { type Function, functions, subscriptions } from "@spry/function";
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventingClusterRules,
  eventingName,
  eventingNamespaceRules,
  natsName,
} from "../../packages/cli/src/install/eventing-objects.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { pushNatsImage } from "../support/nats-image.ts";
import { functionManifest } from "../support/platform.ts";
import { rightsMissing, rightsUnused } from "../support/rights.ts";
import { whyNoNats } from "../../tools/nats-server/binary.ts";

const reason = whyNoInstallation() ?? whyNoNats();
const cluster = new InstalledCluster();
const system = "kyma-system";
const namespace = `events-${randomBytes(3).toString("hex")}`;
const patience = { timeout: 120_000, interval: 500 };

/** Keeps the ids that it has got, and how often; its one Pod is never killed. */
const source = `const seen = new Map();
module.exports = { main: (event) => {
  const id = event["ce-id"];
  if (id !== undefined) seen.set(id, (seen.get(id) ?? 0) + 1);
  else return JSON.stringify([...seen]);
} };`;

const deletePod = async (label: string) => {
  const { items } = await cluster.client.list(resources.pods, {
    namespace: system,
    labelSelector: `app.kubernetes.io/name=${label}`,
  });
  const name = items[0]?.metadata.name ?? "";
  const now = { gracePeriodSeconds: 0 };
  await cluster.client.delete(resources.pods, { namespace: system, name }, now);
};

/** Publishes for so long, and prints the ids that were accepted. */
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

const publish = async (prefix: string, seconds: number) =>
  JSON.parse(await cluster.inClient(namespace, publishing(prefix, seconds))) as string[];

const received = async () =>
  new Map(JSON.parse(await cluster.call(namespace, "sink")) as [string, number][]);

const untilDelivered = async (accepted: readonly string[]) => {
  const missing = async () => {
    const seen = await received();
    return accepted.filter((id) => !seen.has(id)).length;
  };
  await expect.poll(missing, patience).toBe(0);
};

describe.skipIf(reason !== undefined)(`events${reason ? ` (skipped: ${reason})` : ""}`, () => {
  beforeAll(async () => {
    await cluster.start({ moreImages: ["eventing"] });
    const values = path.join(cluster.scratch, "eventing.json");
    const image = await pushNatsImage(cluster.imageRegistry, cluster.scratch);
    const storage = { size: "1Gi", storageClassName: "of-the-test" };
    const eventing = { enabled: true, nats: { image, storage } };
    writeFileSync(values, JSON.stringify({ eventing }));
    const { code, stderr } = await cluster.install("--values", values);
    if (code !== 0) throw new Error(stderr);
    await cluster.client.create(resources.namespaces, {
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    await cluster.startClient(namespace);
    const fn = JSON.parse(functionManifest("sink", source, {}, { namespace })) as Function;
    await cluster.client.apply(functions, fn, { fieldManager: "test" });
    await cluster.untilRunning(namespace, "sink");
    await cluster.client.create(subscriptions, {
      metadata: { name: "orders", namespace },
      spec: {
        sink: `http://sink.${namespace}.svc.cluster.local`,
        source: "shop",
        types: ["order.created.v1"],
        config: { maxInFlightMessages: "20" },
      },
    });
    for (;;) {
      const target = { namespace, name: "orders" };
      if ((await cluster.client.get(subscriptions, target)).status?.ready === true) break;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }, 900_000);
  afterAll(() => cluster.stop(), 60_000);

  test("an event that is published in a Pod reaches the Function", async () => {
    const accepted = await publish("first", 2);
    expect(accepted.length).toBeGreaterThan(0);
    await untilDelivered(accepted);
  }, 180_000);

  test("nothing that was accepted is lost while programs that accept and deliver are killed", async () => {
    const accepted = publish("eventing", 25);
    for (let round = 0; round < 3; round++) {
      await new Promise((resolve) => setTimeout(resolve, 6_000));
      await deletePod(eventingName);
    }
    expect((await accepted).length).toBeGreaterThan(20);
    await untilDelivered(await accepted);
  }, 300_000);

  test("nothing that was accepted is lost when the NATS server is killed", async () => {
    const accepted = publish("nats", 25);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await deletePod(natsName);
    expect((await accepted).length).toBeGreaterThan(20);
    await untilDelivered(await accepted);
  }, 300_000);

  test("a call that may wait is accepted by the gateway, and made by the program", async () => {
    const script = `
      const host = "sink.${namespace}.svc.cluster.local";
      const http = require("node:http");
      const ask = (options, body) => new Promise((resolve, reject) => {
        const request = http.request({ host: "serverless-gateway.${system}.svc.cluster.local", ...options, headers: { host, ...options.headers } }, async (response) => {
          let text = "";
          for await (const chunk of response) text += chunk;
          resolve({ status: response.statusCode, headers: response.headers, text });
        });
        request.on("error", reject);
        request.end(body);
      });
      (async () => {
        const accepted = await ask({ method: "POST", path: "/", headers: { prefer: "respond-async" } }, "x");
        const path = new URL(accepted.headers.location ?? "http://none/", "http://none").pathname;
        const end = Date.now() + 60_000;
        for (;;) {
          const { text } = await ask({ path });
          if (text.includes('"state":"succeeded"') || Date.now() > end) return console.log(accepted.status, text);
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
      })().catch((error) => console.log(String(error)));`;
    const answer = await cluster.inClient(namespace, script);
    expect(answer).toContain("202 ");
    expect(answer).toContain('"state":"succeeded"');
  }, 120_000);

  test("the program has the rights that it uses, and no others", async () => {
    const asked = cluster.asked(`${system}:${eventingName}`);
    expect(rightsMissing(asked)).toEqual([]);
    const rules = [...eventingClusterRules, ...eventingNamespaceRules];
    // Only where a delivery fails.
    const sometimes = new Set(["create /events", "patch /events"]);
    expect(rightsUnused(asked, rules).filter((right) => !sometimes.has(right))).toEqual([]);
  });

  test("a definition of Subscriptions that is another installation's is left to it, and the status says so", async () => {
    const crd = { name: "subscriptions.eventing.kyma-project.io" };
    const { metadata } = await cluster.client.get(resources.customResourceDefinitions, crd);
    const labels = Object.fromEntries(
      Object.keys(metadata.labels ?? {}).map((name) => [name, null]),
    );
    await cluster.client.patch(resources.customResourceDefinitions, crd, { metadata: { labels } });
    const status = async () =>
      JSON.stringify((await cluster.client.list(serverlesses)).items.map((each) => each.status));
    await expect
      .poll(status, patience)
      .toContain("Subscriptions are defined by another installation");
  }, 180_000);

  test("uninstalling leaves another installation's definition, and nothing of ours", async () => {
    const { code, stderr } = await cluster.spry("uninstall", "--functions", "delete");
    expect(stderr).toContain("Spry is uninstalled.");
    expect(code).toBe(0);
    const { items } = await cluster.client.list(resources.customResourceDefinitions);
    const names = items.map(({ metadata }) => metadata.name);
    expect(names).toEqual(["subscriptions.eventing.kyma-project.io"]);
  }, 240_000);
});
