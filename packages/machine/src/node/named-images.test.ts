import { resources } from "@spry/kube";
import { expect, test } from "vitest";
import { deploymentOf, eventually, startMachine } from "../testing.ts";
import { imagesNamedBy } from "./named-images.ts";

test("a Deployment at zero names its image, and that of the revision before", async () => {
  const { client } = await startMachine();
  const apply = async (image: string) => {
    await client.apply(resources.deployments, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      ...deploymentOf("idle", image, { replicas: 0 }),
    });
    await eventually(async () => expect(await imagesNamedBy(client)).toContain(image));
    // The controller has made the revision.
    await eventually(async () => {
      const { items } = await client.list(resources.replicaSets);
      const images = items.map(({ spec }) => spec?.template?.spec?.containers[0]?.image);
      expect(images).toContain(image);
    });
  };
  await apply("registry.example/idle:1");
  await apply("registry.example/idle:2");
  expect([...(await imagesNamedBy(client))].sort()).toEqual([
    "registry.example/idle:1",
    "registry.example/idle:2",
  ]);
  await client.delete(resources.deployments, { namespace: "default", name: "idle" });
  await eventually(async () => expect(await imagesNamedBy(client)).toEqual(new Set()));
});
