import {
  type KubeClient,
  type KubeObject,
  type ObjectMeta,
  resources,
  type Resource,
} from "@spry/kube";
import { describe, expect, test } from "vitest";
import { eventually } from "../../testing.ts";
import { namespace, startCluster } from "../testing.ts";

describe("garbage collection", () => {
  const configMap = (name: string, owner?: KubeObject, more: Partial<ObjectMeta> = {}) => ({
    metadata: {
      namespace,
      name,
      ...(owner
        ? {
            ownerReferences: [
              {
                apiVersion: "v1",
                kind: "ConfigMap",
                name: owner.metadata.name ?? "",
                uid: owner.metadata.uid ?? "",
                blockOwnerDeletion: true,
              },
            ],
          }
        : {}),
      ...more,
    },
  });
  const names = async (client: KubeClient) =>
    (await client.list(resources.configMaps, { namespace })).items.map(
      ({ metadata }) => metadata.name,
    );

  test("deletes what hangs on a deleted object, to the last leaf", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    const child = await client.create(resources.configMaps, configMap("child", root));
    await client.create(resources.configMaps, configMap("grandchild", child));
    await client.delete(resources.configMaps, { namespace, name: "root" });
    await eventually(async () => expect(await names(client)).toEqual([]));
  });

  test("in the foreground, the owner goes last", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    await client.create(
      resources.configMaps,
      configMap("child", root, { finalizers: ["example.com/hold"] }),
    );
    await client.delete(
      resources.configMaps,
      { namespace, name: "root" },
      { propagationPolicy: "Foreground" },
    );
    await eventually(async () => {
      const child = await client.get(resources.configMaps, { namespace, name: "child" });
      expect(child.metadata.deletionTimestamp).toBeDefined();
    });
    expect(await names(client)).toEqual(["child", "root"]);
    await client.patch(
      resources.configMaps,
      { namespace, name: "child" },
      { metadata: { finalizers: null } },
    );
    await eventually(async () => expect(await names(client)).toEqual([]));
  });

  test("orphans are kept, without their owner", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    await client.create(resources.configMaps, configMap("child", root));
    await client.delete(
      resources.configMaps,
      { namespace, name: "root" },
      { propagationPolicy: "Orphan" },
    );
    await eventually(async () => expect(await names(client)).toEqual(["child"]));
    const child = await client.get(resources.configMaps, { namespace, name: "child" });
    expect(child.metadata.ownerReferences ?? []).toEqual([]);
  });

  test("an owner of the same name but another uid is none", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    const other = { metadata: { ...root.metadata, uid: "00000000-0000-0000-0000-000000000000" } };
    await client.create(resources.configMaps, configMap("child", other));
    await eventually(async () => expect(await names(client)).toEqual(["root"]));
  });

  test("of two owners, the one that is left is enough", async () => {
    const client = await startCluster();
    const [one, two] = [
      await client.create(resources.configMaps, configMap("one")),
      await client.create(resources.configMaps, configMap("two")),
    ];
    const ownerReferences = [one, two].flatMap(
      (owner) => configMap("x", owner).metadata.ownerReferences ?? [],
    );
    await client.create(resources.configMaps, configMap("child", undefined, { ownerReferences }));
    await client.delete(resources.configMaps, { namespace, name: "one" });
    await eventually(async () => {
      const child = await client.get(resources.configMaps, { namespace, name: "child" });
      expect(child.metadata.ownerReferences?.map(({ name }) => name)).toEqual(["two"]);
    });
  });

  test("kinds that are defined later are owners like any other", async () => {
    const client = await startCluster();
    const widgets: Resource = {
      group: "example.com",
      version: "v1",
      kind: "Widget",
      plural: "widgets",
      namespaced: true,
    };
    await client.create(resources.customResourceDefinitions, {
      metadata: { name: "widgets.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { kind: "Widget", plural: "widgets", singular: "widget", listKind: "WidgetList" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
          },
        ],
      },
    });
    const widget = await eventually(() =>
      client.create(widgets, { metadata: { namespace, name: "w" } }),
    );
    const ownerReferences = [
      { apiVersion: "example.com/v1", kind: "Widget", name: "w", uid: widget.metadata.uid ?? "" },
    ];
    await client.create(resources.configMaps, configMap("child", undefined, { ownerReferences }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await names(client)).toEqual(["child"]);
    await client.delete(widgets, { namespace, name: "w" });
    await eventually(async () => expect(await names(client)).toEqual([]));
  });
});
