/** From an earlier version of this repository to this one, by `spry install` over what is there, under load. */
import { randomBytes } from "node:crypto";
import path from "node:path";
import { annotations, type Function, functions } from "@spry/function";
import { serverlesses } from "@spry/controller";
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Load } from "../support/client-pod.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest } from "../support/platform.ts";
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
  const imagesFile = path.join(cluster.scratch, "previous.json");
  let old: Record<string, string>;
  let load: Load;

  beforeAll(async () => {
    checkOut(previous, checkout);
    await cluster.start();
    old = await cluster.makeImages(checkout, imagesFile);
  }, 600_000);
  afterAll(() => cluster.stop(), 60_000);

  test(`the version before (${previous.slice(0, 12)}) is installed by its own command, and runs Functions`, async () => {
    const { code, stderr } = await cluster.installVersion(checkout, imagesFile);
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

  test("this version over it: no Function is built or started anew, and an edit is built by the new one", async () => {
    const before = { pods: await pods(), jobs: await jobs() };
    const { code, stderr } = await cluster.install();
    expect(stderr).toContain("Spry is installed");
    expect(code).toBe(0);
    // The last of the version before may take a moment to end.
    await expect.poll(controllerImages, patience).toEqual([cluster.images["controller"]]);
    await expect.poll(leadsANewOne, patience).toBe(true);
    const state = async () =>
      (await cluster.client.get(serverlesses, { namespace: system, name: "default" })).status
        ?.state;
    await expect.poll(state, patience).toBe("Ready");
    // It is behind all that the new controller does at its start.
    await apply("three", 1);
    const edited = await cluster.untilRunning(namespace, "three");
    expect(edited.status?.runtimeImage).toBe(cluster.images["nodejs24"]);
    const answer = () => cluster.call(namespace, "three");
    await expect.poll(answer, patience).toBe("three version 1");
    const others = (list: typeof before.pods) =>
      // By its name of before and by today's.
      list.filter(({ image }) => !/[-/]three@/.test(image));
    expect(others(await pods())).toEqual(others(before.pods));
    expect(await jobs()).toBe(before.jobs + 1);
  }, 300_000);

  test("a Function gets the new runtime when a user asks for a new build", async () => {
    const target = { namespace, name: names[0]! };
    const image = async () => {
      const { spec } = await cluster.client.get(resources.deployments, target);
      return spec?.template.spec?.containers[0]?.image;
    };
    const before = await image();
    const demand = { metadata: { annotations: { [annotations.rebuild]: "upgrade" } } };
    await cluster.client.patch(functions, target, demand);
    await expect.poll(image, patience).not.toBe(before);
    await cluster.untilRunning(namespace, target.name);
    expect(await cluster.call(namespace, target.name)).toBe("one version 0");
  }, 300_000);

  test("all the while every request was answered", async () => {
    const { ok, bad } = await load.stop();
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(100);
  });

  test("what the upgrade has left can be uninstalled", async () => {
    const { code, stderr } = await cluster.spry("uninstall", "--functions", "delete");
    expect(stderr).toContain("Spry is uninstalled.");
    expect(code).toBe(0);
  }, 120_000);
});
