import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, ManualClock, resources } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { expect, test } from "vitest";
import { callBucket, keyBucket } from "./call.ts";
import { NamespaceClaims } from "./namespace-claims.ts";

test("a namespace that was deleted and created again inherits no calls, keys or schedules", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  const queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "claims-")) });
  const clock = new ManualClock();
  const claims = new NamespaceClaims(client, clock);
  const create = (name: string) => client.create(resources.namespaces, { metadata: { name } });
  await create("shop");
  await create("shop-2");
  const kept = [
    [callBucket("shop"), "1"],
    [keyBucket("shop"), "2"],
    ["schedules", "shop/fn/daily"],
    [callBucket("shop-2"), "3"],
    ["schedules", "shop-2/fn/daily"],
  ] as const;
  for (const namespace of ["shop", "shop-2"]) await claims.claim(queue, namespace);
  for (const [bucket, key] of kept) await queue.put({ bucket, key, value: "x" });
  const left = async () => {
    await clock.advance(2_000);
    for (const namespace of ["shop", "shop-2"]) await claims.claim(queue, namespace);
    const found = await Promise.all(kept.map(([bucket, key]) => queue.get(bucket, key)));
    return found.map((value) => value !== undefined);
  };
  expect(await left()).toEqual([true, true, true, true, true]);
  await client.delete(resources.namespaces, { name: "shop" });
  const exists = () =>
    client.get(resources.namespaces, { name: "shop" }).then(Boolean, () => false);
  if (await exists()) {
    const { metadata, spec } = await client.get(resources.namespaces, { name: "shop" });
    const object = { metadata, spec: { ...spec, finalizers: [] } };
    await client.update(resources.namespaces, object, { subresource: "finalize" });
  }
  await create("shop");
  expect(await left()).toEqual([false, false, false, true, true]);
  await queue.close();
  await api.close();
});
