/** What becomes of Knative Serving when Spry is uninstalled. */
import { createApiServer } from "@spry/apiserver";
import { knative } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { installServing, servingAdmissionConfigurations, servingCrds } from "@spry/serving";
import { expect, onTestFinished, test } from "vitest";
import { removeServingDefinitions, removeServingWebhooks } from "./remove-serving.ts";

async function cluster(): Promise<KubeClient> {
  const api = await createApiServer({ dataDir: ":memory:" });
  onTestFinished(() => api.close());
  return new KubeClient(api.transport(), { fieldManager: "test" });
}

async function definitions(client: KubeClient): Promise<number> {
  return (await client.list(resources.customResourceDefinitions)).items.length;
}

test("webhooks go, and definitions once no Knative Service is left", async () => {
  const client = await cluster();
  await client.apply(resources.namespaces, { metadata: { name: "shop" } });
  await installServing(client);
  const [mutating, validating] = servingAdmissionConfigurations((path) => ({
    url: `https://127.0.0.1:1${path}`,
  }));
  await client.apply(resources.mutatingWebhookConfigurations, mutating);
  await client.apply(resources.validatingWebhookConfigurations, validating);
  await removeServingWebhooks(client);
  await removeServingWebhooks(client);
  expect((await client.list(resources.mutatingWebhookConfigurations)).items).toEqual([]);
  expect((await client.list(resources.validatingWebhookConfigurations)).items).toEqual([]);

  const target = { name: "hello", namespace: "shop" };
  await client.create(knative.services, {
    metadata: target,
    spec: { template: { spec: { containers: [] } } },
  });
  expect(await removeServingDefinitions(client)).toBe(1);
  expect(await definitions(client)).toBe(5);
  await client.delete(knative.services, target);
  expect(await removeServingDefinitions(client)).toBe(0);
  expect(await definitions(client)).toBe(0);
});

test("those of another installation stay", async () => {
  const client = await cluster();
  const labels = { "app.kubernetes.io/name": "knative-serving" };
  for (const { metadata, spec } of servingCrds())
    await client.apply(resources.customResourceDefinitions, {
      metadata: { name: metadata.name ?? "", labels },
      spec,
    });
  expect(await removeServingDefinitions(client)).toBe(0);
  expect(await definitions(client)).toBe(5);
});
