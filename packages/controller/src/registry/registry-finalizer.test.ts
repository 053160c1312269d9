import { labels, names, registryFinalizer } from "@spry/function";
import { resources } from "@spry/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { releaseRegistrySecrets } from "./registry-finalizer.ts";
import { namespace, TestPlatform } from "../testing/platform.ts";

const base = "kyma-system";
const name = names.registrySecret;

async function start(holdsRegistrySecrets: boolean) {
  const platform = await TestPlatform.start({ holdsRegistrySecrets });
  onTestFinished(() => platform[Symbol.asyncDispose]());
  const secret = (where: string) =>
    platform.client.get(resources.secrets, { namespace: where, name }).catch(() => undefined);
  const finalizers = async () => (await secret(base))?.metadata.finalizers;
  await platform.until("a copy", async () => (await secret(namespace)) !== undefined);
  const remove = () => platform.client.delete(resources.secrets, { namespace: base, name });
  return { platform, secret, finalizers, remove };
}

describe("the Secret of a registry", () => {
  test("goes after its copies, whatever became of them", async () => {
    const { platform, secret, finalizers, remove } = await start(true);
    await platform.until("the finalizer", async () => (await finalizers())?.length);
    expect(await finalizers()).toEqual([registryFinalizer]);
    expect((await secret(namespace))?.metadata.finalizers).toBeUndefined();
    // Another program's finalizer shows that the model outlives its copies.
    const other = { metadata: { finalizers: ["example.com/other", registryFinalizer] } };
    await platform.client.patch(resources.secrets, { namespace: base, name }, other);
    await remove();
    await platform.until("no copy", async () => (await secret(namespace)) === undefined);
    await platform.until("ours to be gone", async () => (await finalizers())?.length === 1);
    expect(await finalizers()).toEqual(["example.com/other"]);
    await platform.settle();
    expect(await secret(namespace)).toBeUndefined();
  });

  test("does not take along what a person has made theirs", async () => {
    const { platform, secret, finalizers, remove } = await start(true);
    await platform.until("the finalizer", async () => (await finalizers())?.length);
    const theirs = { metadata: { labels: { [labels.managedBy]: "user" } } };
    await platform.client.patch(resources.secrets, { namespace, name }, theirs);
    await remove();
    await platform.until("the model to be gone", async () => (await secret(base)) === undefined);
    expect(await secret(namespace)).toBeDefined();
  });

  test("does not wait where no controller would act", async () => {
    const held = { metadata: { finalizers: [registryFinalizer] } };
    const { platform, secret, finalizers, remove } = await start(false);
    await platform.client.patch(resources.secrets, { namespace: base, name }, held);
    await platform.until("no finalizer", async () => !(await finalizers())?.length);
    await remove();
    await platform.until("all to be gone", async () => (await secret(namespace)) === undefined);
  });

  test("is released when the platform is taken away", async () => {
    const { platform, finalizers } = await start(true);
    await platform.until("the finalizer", async () => (await finalizers())?.length);
    await platform.stopController();
    expect(await releaseRegistrySecrets(platform.client, base)).toBe(1);
    expect(await finalizers()).toBeUndefined();
    expect(await releaseRegistrySecrets(platform.client, base)).toBe(0);
  });
});
