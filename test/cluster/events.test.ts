/**
 * Events on a real cluster: from a publisher in a Pod through NATS to a Function, while what keeps and delivers them is killed; and
 * their administration by people with the cluster's usual credentials.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { serverlesses } from "@spry/controller";
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventingClusterRules,
  eventingName,
  eventingNamespaceRules,
} from "../../packages/cli/src/install/eventing-objects.ts";
import { natsName } from "../../packages/cli/src/install/nats-objects.ts";
import {
  administrationName,
  administrationService,
  apiServices,
} from "../../packages/cli/src/install/administration.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { ClusterEvents, system } from "../support/cluster-events.ts";
import { run } from "../support/platform.ts";
import { rightsMissing, rightsUnused } from "../support/rights.ts";
import { whyNoNats } from "../../tools/nats-server/binary.ts";

const reason = whyNoInstallation() ?? whyNoNats();
const cluster = new InstalledCluster();
const namespace = `events-${randomBytes(3).toString("hex")}`;
const events = new ClusterEvents(cluster, namespace);
const patience = { timeout: 120_000, interval: 500 };

/** A person with the role `edit` in the namespace, and no other rights. */
let editor = "";

async function kubeconfigOf(name: string): Promise<string> {
  const kubectl = async (...args: string[]) => {
    const config = `--kubeconfig=${cluster.kubeconfig}`;
    const { code, stdout, stderr } = await run("kubectl", [config, ...args]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const file = path.join(cluster.scratch, `${name}.kubeconfig`);
  await kubectl("create", "serviceaccount", name, "-n", namespace);
  const account = `--serviceaccount=${namespace}:${name}`;
  await kubectl("create", "rolebinding", name, "--clusterrole=edit", account, "-n", namespace);
  const token = (await kubectl("create", "token", name, "-n", namespace)).trim();
  const config = JSON.parse(await kubectl("config", "view", "--raw", "--minify", "-o", "json")) as {
    users: { user: object }[];
  };
  for (const each of config.users) each.user = { token };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** A command that has to work, of the cluster's administrator or of another person. */
async function spry(args: string[], kubeconfig = cluster.kubeconfig): Promise<string> {
  const { code, stdout, stderr } = await cluster.spryWith(kubeconfig, [...args, "-n", namespace]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

describe.skipIf(reason !== undefined)(`events${reason ? ` (skipped: ${reason})` : ""}`, () => {
  beforeAll(async () => {
    await events.install(1);
    await events.subscribe("refused", "order.refused.v1", { delivery: { maxAttempts: 1 } });
    editor = await kubeconfigOf("editor");
  }, 900_000);
  afterAll(() => cluster.stop(), 60_000);

  test("an event that is published in a Pod reaches the Function", async () => {
    const accepted = await events.publish("first", 2);
    expect(accepted.length).toBeGreaterThan(0);
    await events.untilDelivered(accepted);
  }, 180_000);

  test("nothing that was accepted is lost while programs that accept and deliver are killed", async () => {
    const accepted = events.publish("eventing", 25);
    for (let round = 0; round < 3; round++) {
      await new Promise((resolve) => setTimeout(resolve, 6_000));
      await events.killPod(eventingName);
    }
    expect((await accepted).length).toBeGreaterThan(20);
    await events.untilDelivered(await accepted);
  }, 300_000);

  test("nothing that was accepted is lost when the NATS server is killed", async () => {
    const accepted = events.publish("nats", 25);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await events.killPod(natsName);
    expect((await accepted).length).toBeGreaterThan(20);
    await events.untilDelivered(await accepted);
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

  test("a person publishes, watches and replays events with the credentials of the cluster", async () => {
    const shop = ["--source", "shop"];
    const publishing = ["events", "publish", "--type", "order.created.v1", ...shop];
    await spry([...publishing, "--id", "by-hand", "-d", `{"n":1}`]);
    await events.untilDelivered(["by-hand"]);
    const tailed = await spry(["events", "tail", "--once", "--type", "order.created.v1"]);
    expect(tailed).toContain('"id":"by-hand"');
    expect(await spry(["events", "list"], editor)).toMatch(/^orders +0 +0 +0 +0 /m);
    await spry(["events", "replay", "orders", "--from", "1h"], editor);
    await expect
      .poll(async () => (await events.received()).get("by-hand"), patience)
      .toBeGreaterThanOrEqual(2);
  }, 180_000);

  test("dead letters are listed, shown, redriven and discarded by those who may edit the namespace", async () => {
    const publishing = ["events", "publish", "--type", "order.refused.v1", "--source", "shop"];
    for (const id of ["refused-1", "refused-2"])
      await spry([...publishing, "--id", id, "-d", `{"refuse":true}`]);
    const letters = async () =>
      JSON.parse(await spry(["dlq", "list", "refused", "-o", "json"], editor)) as {
        id: number;
        event: { id: string };
      }[];
    await expect.poll(async () => (await letters()).length, patience).toBe(2);
    const idOf = async (id: string) =>
      String((await letters()).find(({ event }) => event.id === id)?.id);
    const shown = await spry(["dlq", "show", "refused", await idOf("refused-1")], editor);
    expect(shown).toContain("HTTP 500");
    await spry([...publishing, "--id", "accept", "-d", `{"accept":true}`]);
    await events.untilDelivered(["accept"]);
    const redriving = ["dlq", "redrive", "refused", await idOf("refused-1")];
    expect(await spry(redriving, editor)).toBe("1 delivered again\n");
    await events.untilDelivered(["refused-1"]);
    expect(await spry(["dlq", "discard", "refused", "--all"], editor)).toBe("1 discarded\n");
  }, 180_000);

  test("calls are listed, shown and cancelled, and a run of a schedule is started", async () => {
    const id = (await spry(["schedule", "run", "sink", "yearly"], editor)).trim();
    await expect
      .poll(async () => await spry(["async", "get", id], editor), patience)
      .toContain('"state": "succeeded"');
    const script = `
      const http = require("node:http");
      const headers = { host: "sink.${namespace}.svc.cluster.local", prefer: "respond-async", "x-async-delay": "3600" };
      http.request({ method: "POST", host: "serverless-gateway.${system}.svc.cluster.local", headers }, (response) => {
        response.resume();
        console.log(response.headers["x-call-id"]);
      }).end("x");`;
    const waiting = (await cluster.inClient(namespace, script)).trim();
    expect(await spry(["async", "list"], editor)).toMatch(/ sink +waiting /);
    expect(await spry(["async", "cancel", waiting], editor)).toContain("cancelled");
    expect(await spry(["async", "get", waiting], editor)).toContain('"state": "cancelled"');
  }, 180_000);

  test("the administration is closed to those who may not have the contents", async () => {
    const refusal = async (...args: string[]) => (await cluster.spryWith(editor, [...args])).stderr;
    expect(await refusal("events", "tail", "--once")).toContain("forbidden");
    expect(await refusal("dlq", "list", "any", "-n", "default")).toContain("forbidden");
  }, 60_000);

  test("namespaces are deleted while no Pod of the program runs, and the program answers again when it does", async () => {
    const target = { namespace: system, name: eventingName };
    const scale = (replicas: number) =>
      cluster.client.patch(resources.deployments, target, { spec: { replicas } });
    const service = async () => {
      const { spec } = await cluster.client.get(apiServices, { name: administrationName });
      return spec?.service?.name;
    };
    await scale(0);
    await expect.poll(service, patience).toBe("serverless-webhook");
    const name = `${namespace}-gone`;
    await cluster.client.create(resources.namespaces, { metadata: { name } });
    await cluster.client.delete(resources.namespaces, { name });
    const remains = async () =>
      (await cluster.client.list(resources.namespaces)).items.some(
        ({ metadata }) => metadata.name === name,
      );
    await expect.poll(remains, patience).toBe(false);
    const { code, stderr } = await cluster.spryWith(editor, ["events", "list", "-n", namespace]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("serverless-eventing")]);
    await scale(2);
    await expect.poll(service, patience).toBe(administrationService);
    const answer = async () =>
      (await cluster.spryWith(editor, ["events", "list", "-n", namespace])).code;
    await expect.poll(answer, patience).toBe(0);
  }, 400_000);

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
    const labelSelector = "app.kubernetes.io/part-of=spry";
    const bindings = { group: "rbac.authorization.k8s.io", version: "v1", kind: "RoleBinding" };
    const elsewhere = await cluster.client.list(
      { ...bindings, plural: "rolebindings", namespaced: true },
      { namespace: "kube-system", labelSelector },
    );
    expect(elsewhere.items).toEqual([]);
  }, 240_000);
});
