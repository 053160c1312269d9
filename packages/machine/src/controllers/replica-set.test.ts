import { controllerOf, resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
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
});
