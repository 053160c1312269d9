import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { countsTokenName, ensureCountsToken, readCountsToken } from "./counts-token.ts";

const namespace = "default";

test("leader and gateways have the same token, and again after its Secret was deleted or emptied", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  const target = { namespace, name: countsTokenName };
  expect(await readCountsToken(client, namespace)).toBeUndefined();
  const first = await ensureCountsToken(client, namespace);
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(await readCountsToken(client, namespace)).toBe(first);
  expect(await ensureCountsToken(client, namespace)).toBe(first);
  await client.delete(resources.secrets, target);
  const second = await ensureCountsToken(client, namespace);
  expect(second).not.toBe(first);
  await client.patch(resources.secrets, target, { data: { token: null } });
  const third = await ensureCountsToken(client, namespace);
  expect(await readCountsToken(client, namespace)).toBe(third);
  expect(new Set([first, second, third]).size).toBe(3);
  await api.close();
});
