/** From an earlier version of this repository to this one, by `spry install` over what is there, under load. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { type Function, functions } from "@spry/function";
import { serverlesses } from "@spry/controller";
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Load } from "../support/client-pod.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest, root } from "../support/platform.ts";
import { checkOut, previousVersion, whyNoPrevious } from "../support/previous-version.ts";

const reason = whyNoInstallation() ?? whyNoPrevious();
const previous = previousVersion() ?? "";
const cluster = new InstalledCluster();
const system = "kyma-system";
const namespace = `upgrade-${randomBytes(3).toString("hex")}`;
const names = ["one", "two", "three"];
const patience = { timeout: 120_000, interval: 250 };

async function apply(name: string, version: number): Promise<void> {
  const source = `module.exports = { main: () => "${name} version ${version}" };`;
  const fn = JSON.parse(functionManifest(name, source, {}, { namespace })) as Function;
  await cluster.client.apply(functions, fn, { fieldManager: "test" });
}

/** Of the Functions' Pods that are to stay: who they are, and what they run. */
async function pods(): Promise<{ uid: string; image: string }[]> {
  const labelSelector = "serverless.kyma-project.io/resource=deployment";
  const { items } = await cluster.client.list(resources.pods, { namespace, labelSelector });
  return items
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map(({ metadata, spec }) => ({
      uid: metadata.uid ?? "",
      image: spec?.containers[0]?.image ?? "",
    }))
    .toSorted((a, b) => (a.image < b.image ? -1 : 1));
}

async function jobs(): Promise<number> {
  return (await cluster.client.list(resources.jobs, { namespace })).items.length;
}

async function controllerImages(): Promise<string[]> {
  const labelSelector = "app.kubernetes.io/name=serverless-controller";
  const { items } = await cluster.client.list(resources.pods, { namespace: system, labelSelector });
  return [...new Set(items.map(({ spec }) => spec?.containers[0]?.image ?? ""))];
}

async function leadsANewOne(): Promise<boolean> {
  const { items } = await cluster.client.list(resources.leases, { namespace: system });
  const holder = items[0]?.spec?.holderIdentity ?? "";
  const target = { namespace: system, name: holder };
  const pod = await cluster.client.get(resources.pods, target).catch(() => undefined);
  return pod?.spec?.containers[0]?.image === cluster.images["controller"];
}

describe.skipIf(reason !== undefined)(`upgrade${reason ? ` (skipped: ${reason})` : ""}`, () => {
  const checkout = path.join(cluster.scratch, "previous");
  const file = (name: string) => path.join(cluster.scratch, `${name}.json`);
  let old: Record<string, string>;
  let load: Load;

  beforeAll(async () => {
    checkOut(previous, checkout);
    await cluster.start();
    old = await cluster.makeImages(checkout, file("previous"));
    const mixed = { ...cluster.images, nodejs24: old["nodejs24"] };
    writeFileSync(file("mixed"), JSON.stringify({ images: mixed }));
    writeFileSync(file("new"), JSON.stringify({ images: cluster.images }));
  }, 600_000);
  afterAll(() => cluster.stop(), 60_000);

  test(`the version before (${previous.slice(0, 12)}) is installed by its own command, and runs Functions`, async () => {
    const { code, stderr } = await cluster.installVersion(checkout, file("previous"));
    expect(stderr).toContain("Spry is installed");
    expect(code).toBe(0);
    expect(await controllerImages()).toEqual([old["controller"]]);
    const level = { "pod-security.kubernetes.io/enforce": "restricted" };
    await cluster.client.create(resources.namespaces, {
      metadata: { name: namespace, labels: level },
    });
    await cluster.startClient(namespace);
    for (const name of names) await apply(name, 0);
    for (const name of names) await cluster.untilRunning(namespace, name);
    load = await Load.start(cluster, namespace, names[0]!);
  }, 300_000);

  test("another controller, builder and registry: no Function is built or started anew", async () => {
    const before = { pods: await pods(), jobs: await jobs() };
    const { code, stderr } = await cluster.installVersion(root, file("mixed"));
    expect(stderr).toContain("Spry is installed");
    expect(code).toBe(0);
    expect(await controllerImages()).toEqual([cluster.images["controller"]]);
    await expect.poll(leadsANewOne, patience).toBe(true);
    const state = async () =>
      (await cluster.client.get(serverlesses, { namespace: system, name: "default" })).status
        ?.state;
    await expect.poll(state, patience).toBe("Ready");
    // An edit is behind all that the new controller does at its start.
    await apply("three", 1);
    await cluster.untilRunning(namespace, "three");
    const answer = () => cluster.call(namespace, "three");
    await expect.poll(answer, patience).toBe("three version 1");
    const others = (await pods()).filter(({ image }) => !image.includes(`${namespace}-three@`));
    expect(others).toEqual(
      before.pods.filter(({ image }) => !image.includes(`${namespace}-three@`)),
    );
    expect(await jobs()).toBe(before.jobs + 1);
  }, 300_000);

  test("another runtime: each Function is built and started anew, one without is not", async () => {
    const before = await pods();
    const { code } = await cluster.installVersion(root, file("new"));
    expect(code).toBe(0);
    await expect.poll(leadsANewOne, patience).toBe(true);
    const isAnother = old["nodejs24"] !== cluster.images["nodejs24"];
    const replaced = async () => {
      const uids = new Set((await pods()).map(({ uid }) => uid));
      return before.filter(({ uid }) => !uids.has(uid)).length;
    };
    await expect.poll(replaced, patience).toBe(isAnother ? names.length : 0);
    for (const name of names) await cluster.untilRunning(namespace, name);
    expect(await pods()).toHaveLength(names.length);
    expect(await cluster.call(namespace, "three")).toBe("three version 1");
  }, 300_000);

  test("all the while every request was answered", async () => {
    const { ok, bad } = await load.stop();
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(100);
  });

  test("what the upgrade has left can be uninstalled", async () => {
    const { code, stderr } = await cluster.spry("uninstall", "--functions", "delete");
    expect(stderr).toContain("Spry is gone.");
    expect(code).toBe(0);
  }, 120_000);
});
