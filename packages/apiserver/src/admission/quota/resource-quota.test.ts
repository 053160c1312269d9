import { KubeClient, resources } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

const namespace = "default";
const quota = { namespace, name: "quota" };

/** What the controller would write is written here. */
async function enforce(hard: Record<string, string>): Promise<void> {
  await client.create(resources.resourceQuotas, { metadata: quota, spec: { hard } });
  const used = Object.fromEntries(Object.keys(hard).map((name) => [name, "0"]));
  await client.patch(
    resources.resourceQuotas,
    quota,
    { status: { hard, used } },
    { subresource: "status" },
  );
}

const used = async () => (await client.get(resources.resourceQuotas, quota)).status?.used;
const create = (name: string) =>
  client.create(resources.configMaps, { metadata: { namespace, name } });

test("creations at the same time cannot exceed a quota together", async () => {
  await enforce({ configmaps: "5" });
  const names = Array.from({ length: 40 }, (_, index) => `c${index}`);
  const results = await Promise.allSettled(names.map(create));
  const created = results.filter(({ status }) => status === "fulfilled");
  expect(created).toHaveLength(5);
  const refused = results.find((result) => result.status === "rejected");
  expect(String(refused?.reason)).toContain(
    "is forbidden: exceeded quota: quota, requested: configmaps=1, used: configmaps=5, limited: configmaps=5",
  );
  expect(await used()).toEqual({ configmaps: "5" });
});

test("what is not created is not counted", async () => {
  await enforce({ configmaps: "5" });
  await create("a");
  await expect(create("a")).rejects.toThrow("already exists");
  await client.create(
    resources.configMaps,
    { metadata: { namespace, name: "b" } },
    { dryRun: true },
  );
  expect(await used()).toEqual({ configmaps: "1" });
});

test("a quota is counted up by the server itself, which owns what it writes", async () => {
  await enforce({ configmaps: "5" });
  await create("a");
  const { metadata } = await client.get(resources.resourceQuotas, quota);
  expect(metadata.managedFields?.map(({ manager }) => manager)).toContain("kube-apiserver");
});

test.each([
  ["configmaps", "ConfigMap", {}],
  ["secrets", "Secret", {}],
  [
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  ],
])("%s that are gone are free at once, before a controller counts anew", async (plural, kind, spec) => {
  await enforce({ [`count/${plural}`]: "1", "requests.storage": "1Gi" });
  const path = `http://x/api/v1/namespaces/${namespace}/${plural}`;
  const headers = { "content-type": "application/json" };
  const ask = async (method: string, name: string) => {
    const body = JSON.stringify({ apiVersion: "v1", kind, metadata: { name }, ...(kind.startsWith("P") && { spec }) });
    const isNew = method === "POST";
    const url = isNew ? path : `${path}/${name}`;
    return (await server.transport()(new Request(url, { method, headers, ...(isNew && { body }) }))).status;
  };
  for (let round = 0; round < 3; round++) {
    expect(await ask("POST", "a")).toBe(201);
    expect(await ask("POST", "b")).toBe(403);
    expect(await ask("DELETE", "a")).toBe(200);
  }
}); // prettier-ignore

test("usage that a client has written holds while nothing is deleted", async () => {
  await enforce({ configmaps: "1" });
  const status = { used: { configmaps: "3" } };
  await client.patch(resources.resourceQuotas, quota, { status }, { subresource: "status" });
  await expect(create("a")).rejects.toThrow("used: configmaps=3");
});
