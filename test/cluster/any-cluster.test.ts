/**
 * Any cluster, a person's own or a cloud's (`KUBECONFIG`, docs/cluster.md): Spry comes, Functions answer from another Pod,
 * Spry goes. Nothing here knows how the cluster was made.
 */
import { randomBytes } from "node:crypto";
import path from "node:path";
import { functions } from "@spry/function";
import {
  type HttpsTransport,
  httpsTransport,
  isNotFound,
  KubeClient,
  loadKubeconfig,
  type Namespace,
  resources,
} from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnyCluster, startAnyCluster, whyNoneAtAll } from "../support/any-cluster.ts";
import { answerOf, startClient } from "../support/client-pod.ts";
import { inventory } from "../support/cluster-inventory.ts";
import { functionManifest, root, run } from "../support/platform.ts";
import { untilRunning } from "../support/until-running.ts";

const reason = whyNoneAtAll();
const namespace = `shop-${randomBytes(3).toString("hex")}`;
const patience = { timeout: 120_000, interval: 500 };

const source = (text: string) => `const isNumber = require("is-number");
module.exports = { main: async () => ${JSON.stringify(text)} + isNumber("42") };`;
const dependencies = JSON.stringify({ dependencies: { "is-number": "7.0.0" } });

describe.skipIf(reason !== undefined)(`any cluster${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let cluster: AnyCluster;
  let transport: HttpsTransport;
  let client: KubeClient;
  beforeAll(async () => {
    cluster = await startAnyCluster();
    transport = httpsTransport(loadKubeconfig(cluster.kubeconfig));
    client = new KubeClient(transport, { fieldManager: "spry-test" });
    const present = await ours();
    // Another installation is not a test's to change, nor to take away.
    if (present.length > 0) throw new Error(`this cluster has Spry already: ${present.join(", ")}`);
  }, 300_000);
  afterAll(async () => {
    transport?.close();
    await cluster?.stop();
  }, 60_000);

  const spry = (...args: string[]) => {
    const program = path.join(root, "packages/cli/bin/spry.mjs");
    return run(process.execPath, [program, "--kubeconfig", cluster.kubeconfig, ...args]);
  };
  /** The cluster lives: what others make in it meanwhile is not ours. */
  const ours = async () =>
    (await inventory(client)).filter((each) => /spry|serverless|kyma/.test(each));
  const apply = async (text: string) => {
    const object = functionManifest("numbers", source(text), { dependencies }, { namespace });
    await client.apply(functions, JSON.parse(object), { fieldManager: "test" });
    await untilRunning(client, { namespace, name: "numbers" });
  };
  const call = () => answerOf({ ...cluster, client }, namespace, "numbers");

  test("is installed in with one command", async () => {
    const values = cluster.values.flatMap((file) => ["--values", file]);
    const { code, stderr } = await spry("install", "--timeout", "240", ...values);
    expect(stderr).toContain("Spry is installed in kyma-system. You can apply Functions now.");
    expect(code).toBe(0);
  }, 300_000);

  test("runs a Function with a dependency in a restricted namespace, and its edit", async () => {
    await client.create<Namespace>(resources.namespaces, {
      metadata: {
        name: namespace,
        labels: { "pod-security.kubernetes.io/enforce": "restricted" },
      },
    });
    await apply("is it a number? ");
    await startClient({ ...cluster, client }, namespace);
    await expect.poll(call, patience).toBe("is it a number? true");
    await apply("is 42 a number? ");
    await expect.poll(call, patience).toBe("is 42 a number? true");
  }, 400_000);

  test("is left as it was", async () => {
    await client.delete(functions, { namespace, name: "numbers" });
    await client.delete(resources.namespaces, { name: namespace });
    const isGone = () =>
      client.get(resources.namespaces, { name: namespace }).then(() => false, isNotFound);
    await expect.poll(isGone, patience).toBe(true);
    const { code, stderr } = await spry("uninstall");
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    await expect.poll(ours, patience).toEqual([]);
  }, 300_000);
});
