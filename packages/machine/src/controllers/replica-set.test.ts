import { setTimeout as pause } from "node:timers/promises";
import { controllerOf, resources, type Transport } from "@spry/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { deploymentOf, eventually, podsOf } from "../testing.ts";
import { namespace, startCluster } from "./testing.ts";

describe("a ReplicaSet", () => {
  test("adopts Pods that fit, and lets go of those that no longer do", async () => {
    const client = await startCluster();
    const labels = { app: "web" };
    const container = { name: "main", image: "a:1" };
    await client.create(resources.pods, {
      metadata: { namespace, name: "orphan", labels },
      spec: { containers: [container] },
    });
    await client.create(resources.replicaSets, {
      metadata: { namespace, name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    });
    await eventually(async () => {
      const pods = await podsOf(client, "web");
      expect(pods.map((pod) => controllerOf(pod)?.name)).toEqual(["web", "web"]);
    });
    await client.patch(
      resources.pods,
      { namespace, name: "orphan" },
      { metadata: { labels: { app: "other" } } },
    );
    await eventually(async () => {
      expect(
        controllerOf(await client.get(resources.pods, { namespace, name: "orphan" })),
      ).toBeUndefined();
      expect(await podsOf(client, "web")).toHaveLength(2);
    });
  });

  test("makes no Pod twice when the watch shows its Pods in the middle of a pass", async () => {
    const late = lateWatch();
    const client = await startCluster({ between: late.between });
    const labels = { app: "web" };
    const spec = { containers: [{ name: "main", image: "a:1" }] };
    await client.create(resources.pods, { metadata: { namespace, name: "orphan", labels }, spec });
    await eventually(() => Promise.resolve(expect(late.shown()).toContain("orphan")));
    late.hold();
    await client.create(resources.replicaSets, {
      metadata: { namespace, name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
    });
    await eventually(async () => {
      expect(await podsOf(client, "web")).toHaveLength(2);
      const { status } = await client.get(resources.replicaSets, { namespace, name: "web" });
      expect(status?.observedGeneration).toBe(1);
    });
    // It is looked at again because of its status, and asks whether it still exists before it adopts the orphan again.
    await pause(50);
    late.release();
    await eventually(async () => {
      const { status } = await client.get(resources.replicaSets, { namespace, name: "web" });
      expect(status?.replicas).toBe(2);
    });
    expect(late.created()).toBe(1);
  });

  test("never makes more Pods than asked, however often it is changed", async () => {
    const client = await startCluster();
    await client.create(resources.deployments, deploymentOf("web", "a:1", { replicas: 1 }));
    const names = new Set<string>();
    for (let replicas = 2; replicas <= 10; replicas++) {
      await client.patch(resources.deployments, { namespace, name: "web" }, { spec: { replicas } });
      const pods = await podsOf(client, "web");
      expect(pods.length).toBeLessThanOrEqual(replicas);
      for (const { metadata } of pods) names.add(metadata.name ?? "");
    }
    await eventually(async () => expect(await podsOf(client, "web")).toHaveLength(10));
    for (const { metadata } of await podsOf(client, "web")) names.add(metadata.name ?? "");
    expect(names.size).toBe(10);
  });

  test("no longer counts a Pod in the status that follows its deletion", async () => {
    const client = await startCluster();
    const labels = { app: "web" };
    const set = { namespace, name: "web" };
    const created = await client.create(resources.replicaSets, {
      metadata: set,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "a:1" }] } },
      },
    });
    const statusOf = async () => (await client.get(resources.replicaSets, set)).status;
    await eventually(async () => expect((await statusOf())?.replicas).toBe(2));
    const seen: (number | undefined)[] = [];
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const { resourceVersion = "" } = created.metadata;
    const watching = (async () => {
      const only = { namespace, resourceVersion, signal: ending.signal };
      for await (const { type, object } of client.watch(resources.replicaSets, only)) {
        if (type !== "BOOKMARK" && object.status?.observedGeneration === 2)
          seen.push(object.status.replicas);
        if (seen.at(-1) === 1) return;
      }
    })();
    await client.patch(resources.replicaSets, set, { spec: { replicas: 1 } });
    await watching;
    expect(seen).toEqual([1]);
  });

  test("whose Pods are refused writes so once, and tries again after growing pauses", async () => {
    const client = await startCluster();
    const labels = { app: "web" };
    const spec = { hostNetwork: true, containers: [{ name: "main", image: "a:1" }] };
    const { metadata } = await client.create(resources.replicaSets, {
      metadata: { namespace, name: "web" },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    });
    const refused = async () => {
      const { items } = await client.list(resources.events, { namespace });
      return items.filter(({ reason }) => reason === "FailedCreate").length;
    };
    // Attempt by attempt, each of which is an Event of its own.
    await eventually(async () => expect(await refused()).toBeGreaterThan(4));
    const set = await client.get(resources.replicaSets, { namespace, name: "web" });
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const only = {
      namespace,
      resourceVersion: metadata.resourceVersion ?? "",
      signal: ending.signal,
    };
    const writes: string[] = [];
    for await (const { type, object } of client.watch(resources.replicaSets, only)) {
      if (type !== "BOOKMARK") writes.push(object.metadata.resourceVersion ?? "");
      if (writes.at(-1) === set.metadata.resourceVersion) break;
    }
    expect(writes).toHaveLength(1);
  });
});

/** Between controllers and API server: holds what the watch of Pods shows, and meanwhile all reads of one ReplicaSet but the first. */
function lateWatch() {
  let opened = Promise.resolve();
  let release = () => {};
  let shown = "";
  let created = 0;
  let reads = 0;
  const between =
    (transport: Transport): Transport =>
    async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const isOfPods = pathname.endsWith("/pods");
      if (isOfPods && request.method === "POST") created++;
      const isRead = request.method === "GET" && pathname.endsWith("/replicasets/web");
      if (isRead && ++reads > 1) {
        await opened;
        // The watch comes first.
        await pause(20);
      }
      const response = await transport(request);
      if (!isOfPods || !searchParams.has("watch") || !response.body) return response;
      const decoder = new TextDecoder();
      const held = new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          await opened;
          shown += decoder.decode(chunk, { stream: true });
          controller.enqueue(chunk);
        },
      });
      return new Response(response.body.pipeThrough(held), response);
    };
  return {
    between,
    shown: () => shown,
    created: () => created,
    hold: () => {
      opened = new Promise((resolve) => (release = resolve));
    },
    release: () => release(),
  };
}
