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

test("a recorded revision names the image to which its Function may return, whatever else clients have written", async () => {
  const { client } = await startMachine();
  const record = (name: string, data: unknown) =>
    client.create(
      { ...resources.deployments, kind: "ControllerRevision", plural: "controllerrevisions" },
      {
        apiVersion: "apps/v1",
        kind: "ControllerRevision",
        metadata: { name, namespace: "default" },
        revision: 1,
        data,
      } as never,
    );
  const containers = [{ name: "a", image: "registry.example/set:1" }];
  await record("fn-00001", { image: "registry.example/fn@sha256:1", spec: { source: {} } });
  await record("set-1", { spec: { template: { spec: { containers } } } });
  await record("odd-1", { image: 7, spec: { template: { spec: { containers: [null] } } } });
  await record("odd-2", { image: "", spec: { template: "x" } });
  expect([...(await imagesNamedBy(client))].filter(Boolean).sort()).toEqual([
    "registry.example/fn@sha256:1",
    "registry.example/set:1",
  ]);
});
