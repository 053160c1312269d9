import { createApiServer } from "@spry/apiserver";
import { type Function, functionCrd, functions } from "@spry/function";
import { Informer, KubeClient, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { LatestFunctions } from "./latest-functions.ts";

test("what was written counts until the cache has it, and is not kept next to it", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const stop = new AbortController();
  try {
    const client = new KubeClient(api.transport());
    await client.apply(resources.customResourceDefinitions, functionCrd());
    const target = { namespace: "default", name: "hello" };
    const spec = { runtime: "nodejs24", source: { inline: { source: "x" } } } as const;
    const made = await client.create(functions, { metadata: target, spec });
    const cache = new Informer(client, functions);
    const latest = new LatestFunctions(cache);
    void cache.run(stop.signal);
    await cache.synced;
    const key = "default/hello";
    const later = (by: number, labels: Record<string, string>): Function => {
      const resourceVersion = String(Number(made.metadata.resourceVersion) + by);
      return { ...made, metadata: { ...made.metadata, resourceVersion, labels } };
    };
    latest.wrote(key, later(-1, { a: "before" }));
    expect(latest.behind).toBe(0);
    latest.wrote(key, later(1, { a: "written" }));
    expect(latest.get(key)?.metadata.labels).toEqual({ a: "written" });
    expect(latest.behind).toBe(1);

    await client.patch(functions, target, { metadata: { labels: { a: "stored" } } });
    await expect.poll(() => latest.get(key)?.metadata.labels).toEqual({ a: "stored" });
    expect(latest.behind).toBe(0);

    latest.wrote(key, later(1_000_000, {}));
    await client.delete(functions, target);
    await expect.poll(() => latest.get(key)).toBeUndefined();
    expect(latest.behind).toBe(0);
  } finally {
    stop.abort();
    await api.close();
  }
});
