import { createApiServer } from "@spry/apiserver";
import { type Event, KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { deploymentOf, eventually, podsOf } from "../testing.ts";
import { startControllers } from "./start-controllers.ts";

const namespace = "default";
const quota = { namespace, name: "quota" };

async function startCluster(): Promise<KubeClient> {
  const server = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(server.transport());
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await server.close();
  });
  await startControllers({ client, signal: ending.signal });
  return client;
}

const usedOf = async (client: KubeClient) =>
  (await client.get(resources.resourceQuotas, quota)).status?.used;

test("a quota counts what is there already, and again after deletions", async () => {
  const client = await startCluster();
  await client.create(resources.configMaps, { metadata: { namespace, name: "one" } });
  await client.create(resources.services, {
    metadata: { namespace, name: "one" },
    spec: { ports: [{ port: 80 }] },
  });
  const hard = { "count/configmaps": "10", services: "2", "count/deployments.apps": "1" };
  await client.create(resources.resourceQuotas, { metadata: quota, spec: { hard } });
  await eventually(async () =>
    expect(await usedOf(client)).toEqual({
      "count/configmaps": "1",
      "count/deployments.apps": "0",
      services: "1",
    }),
  );
  await client.delete(resources.services, { namespace, name: "one" });
  await eventually(async () => expect(await usedOf(client)).toMatchObject({ services: "0" }));
});

test("a ReplicaSet makes as many Pods as the quota lets it, and tells why not more", async () => {
  const client = await startCluster();
  const hard = { pods: "2" };
  await client.create(resources.resourceQuotas, { metadata: quota, spec: { hard } });
  await eventually(async () => expect(await usedOf(client)).toEqual({ pods: "0" }));
  await client.create(resources.deployments, deploymentOf("app", "image", { replicas: 3 }));
  await eventually(async () => expect(await podsOf(client, "app")).toHaveLength(2));
  await eventually(async () => {
    const { items } = await client.list<Event>(resources.events, { namespace });
    const told = items
      .filter(({ reason }) => reason === "FailedCreate")
      .map((each) => each.message);
    expect(told.join("\n")).toContain(
      "is forbidden: exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2",
    );
  });
});
