import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { type ControllerConfig } from "@spry/controller";
import { functionCrd, functions } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { ensureCertificates } from "../platform/certificates.ts";
import { startWebhookServer } from "../platform/webhook-server.ts";
import { functionsAreAdmitted } from "./admission-check.ts";

const namespace = "kyma-system";

test("Functions are admitted only while the webhooks answer, and none is left behind", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  onTestFinished(() => api.close());
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  await client.apply(resources.customResourceDefinitions, functionCrd());
  // Stored as it came: nobody completed it.
  expect(await functionsAreAdmitted(client, namespace)).toBe(false);

  const dir = mkdtempSync(path.join(tmpdir(), "admission-check-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const { ca, webhook } = await ensureCertificates(dir);
  const config = { runtimeImages: {} } as ControllerConfig;
  const serving = { answers: () => undefined };
  const options = { client, config, serving, host: "127.0.0.1", certificate: webhook, ca };
  const server = await startWebhookServer({ ...options, administrator: client });
  expect(await functionsAreAdmitted(client, namespace)).toBe(true);

  await server.close();
  // Its connection is refused, as by a Service that has no endpoint yet.
  expect(await functionsAreAdmitted(client, namespace)).toMatch(/failed calling webhook/);
  expect((await client.list(functions)).items).toEqual([]);
});

test("whoever else refuses the Function does not keep the installation waiting", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  onTestFinished(() => api.close());
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.customResourceDefinitions, functionCrd());
  // No such namespace: refused with 404, as a policy would with 403.
  expect(await functionsAreAdmitted(client, "nowhere")).toBe(true);
});
