import { KubeClient, resources, StatusError } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

const metadata = (name: string, rest: object = {}) => ({ name, namespace: "default", ...rest });
const configMap = (name: string, data: Record<string, string> = {}, rest: object = {}) => ({
  metadata: metadata(name, rest),
  data,
});

describe("an object", () => {
  test("gets identity, time and version when it is created", async () => {
    const created = await client.create(resources.configMaps, configMap("a", { x: "1" }));
    expect(created).toMatchObject({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "a",
        namespace: "default",
        uid: expect.any(String),
        resourceVersion: expect.stringMatching(/^\d+$/),
      },
      data: { x: "1" },
    });
    expect(await client.get(resources.configMaps, metadata("a"))).toEqual(created);
  });

  test("cannot be created twice, nor changed by who has not seen its latest version", async () => {
    const first = await client.create(resources.configMaps, configMap("a"));
    await expect(client.create(resources.configMaps, configMap("a"))).rejects.toThrow(
      'configmaps "a" already exists',
    );
    await client.update(resources.configMaps, { ...first, data: { x: "1" } });
    await expect(
      client.update(resources.configMaps, { ...first, data: { x: "2" } }),
    ).rejects.toThrow(
      'Operation cannot be fulfilled on configmaps "a": the object has been modified',
    );
  });

  test("keeps its version when a write changes nothing", async () => {
    const first = await client.create(resources.configMaps, configMap("a", { x: "1" }));
    const second = await client.update(resources.configMaps, first);
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("waits for its finalizers", async () => {
    await client.create(
      resources.configMaps,
      configMap("a", {}, { finalizers: ["example.com/wait"] }),
    );
    await client.delete(resources.configMaps, metadata("a"));
    const waiting = await client.get(resources.configMaps, metadata("a"));
    expect(waiting.metadata.deletionTimestamp).toBeDefined();
    await client.patch(resources.configMaps, metadata("a"), { metadata: { finalizers: null } });
    await expect(client.get(resources.configMaps, metadata("a"))).rejects.toThrow(
      'configmaps "a" not found',
    );
  });

  test("may leave its name to the server", async () => {
    const object = { metadata: { generateName: "job-", namespace: "default" } };
    const created = await client.create(resources.configMaps, object);
    expect(created.metadata.name).toMatch(/^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });
});

test("a namespace that does not exist takes no objects", async () => {
  const object = { metadata: { name: "a", namespace: "nowhere" } };
  await expect(client.create(resources.configMaps, object)).rejects.toThrow(
    'namespaces "nowhere" not found',
  );
});

test("lists come in pages, filtered by labels and fields", async () => {
  for (const [index, color] of ["red", "blue", "red", "blue", "red"].entries()) {
    await client.create(resources.configMaps, configMap(`m${index}`, {}, { labels: { color } }));
  }
  const red = await client.list(resources.configMaps, { labelSelector: "color=red", limit: 2 });
  expect(red.items.map(({ metadata: { name } }) => name)).toEqual(["m0", "m2", "m4"]);
  const one = await client.list(resources.configMaps, { fieldSelector: "metadata.name=m3" });
  expect(one.items).toHaveLength(1);
});

test("a watch tells changes from a version on, and what enters or leaves a selection", async () => {
  const start = (await client.list(resources.configMaps)).metadata.resourceVersion ?? "";
  await client.create(resources.configMaps, configMap("a", {}, { labels: { color: "red" } }));
  await client.patch(resources.configMaps, metadata("a"), {
    metadata: { labels: { color: "blue" } },
  });
  await client.patch(resources.configMaps, metadata("a"), {
    metadata: { labels: { color: "red" } },
  });
  const seen: string[] = [];
  const watch = client.watch(resources.configMaps, {
    labelSelector: "color=red",
    resourceVersion: start,
  });
  setImmediate(() => void client.delete(resources.configMaps, metadata("a")));
  for await (const { type } of watch) if (seen.push(type) === 4) break;
  expect(seen).toEqual(["ADDED", "DELETED", "ADDED", "DELETED"]);
});

test("a Service gets an address of its own, unless it wants none", async () => {
  const service = (name: string, spec: object = {}) =>
    client.create(resources.services, {
      metadata: metadata(name),
      spec: { ports: [{ port: 80 }], ...spec },
    });
  const [a, b, none] = await Promise.all([
    service("a"),
    service("b"),
    service("c", { clusterIP: "None" }),
  ]);
  expect(a.spec?.clusterIP).toMatch(/^10\.96\./);
  expect(b.spec?.clusterIP).not.toBe(a.spec?.clusterIP);
  expect(none.spec?.clusterIP).toBe("None");
  expect(a.spec?.ports).toEqual([{ port: 80, protocol: "TCP", targetPort: 80 }]);
});

describe("a Pod", () => {
  const pod = (name: string) => ({
    metadata: metadata(name),
    spec: { containers: [{ name: "main", image: "a/b:1" }] },
  });

  test("that never had a node goes at once; one that runs gets time", async () => {
    await client.create(resources.pods, pod("a"));
    await client.delete(resources.pods, metadata("a"));
    await expect(client.get(resources.pods, metadata("a"))).rejects.toThrow("not found");

    await client.create(resources.pods, pod("b"));
    const binding = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: metadata("b"),
      target: { kind: "Node", name: "n" },
    };
    await client.create(resources.pods, binding as never, { subresource: "binding" });
    await client.delete(resources.pods, metadata("b"));
    const waiting = await client.get(resources.pods, metadata("b"));
    expect(waiting.metadata.deletionGracePeriodSeconds).toBe(30);
    await client.delete(resources.pods, metadata("b"), { gracePeriodSeconds: 0 });
    await expect(client.get(resources.pods, metadata("b"))).rejects.toThrow("not found");
  });
});

const widgets = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
};
const widgetDefinition = {
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced" as const,
    names: { plural: "widgets", kind: "Widget" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
        },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["size"],
                properties: {
                  size: { type: "string", enum: ["small", "large"] },
                  replicas: { type: "integer", default: 1, minimum: 0 },
                },
                "x-kubernetes-validations": [
                  {
                    rule: "self.size == 'large' || self.replicas < 3",
                    message: "small widgets have fewer than 3 replicas",
                  },
                  { rule: "self.size == oldSelf.size", message: "size is immutable" },
                ],
              },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      },
    ],
  },
};

describe("a kind of a CustomResourceDefinition", () => {
  const widget = (spec: object) => ({
    metadata: metadata("w"),
    spec,
    apiVersion: "example.com/v1",
    kind: "Widget",
  });
  beforeEach(async () => {
    const crd = await client.create(resources.customResourceDefinitions, widgetDefinition);
    expect(crd.status?.conditions?.map(({ type, status }) => `${type}=${status}`)).toContain(
      "Established=True",
    );
  });

  test("is defaulted, pruned and validated", async () => {
    const created = await client.create(widgets, widget({ size: "small", unknown: 1 }));
    expect(created).toMatchObject({
      spec: { size: "small", replicas: 1 },
      metadata: { generation: 1 },
    });
    expect(created).not.toHaveProperty("spec.unknown");
  });

  test.each([
    [{}, "spec.size: Required value"],
    [{ size: "x" }, 'spec.size: Unsupported value: "x": supported values: "small", "large"'],
    [
      { size: "small", replicas: "two" },
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
    ],
    [
      { size: "small", replicas: 5 },
      "spec: Invalid value: small widgets have fewer than 3 replicas",
    ],
  ])("refuses %j", async (spec, message) => {
    const failure = client.create(widgets, widget(spec));
    await expect(failure).rejects.toThrow(/^Widget\.example\.com "w" is invalid: /);
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toBeInstanceOf(StatusError);
  });

  test("knows its past in transition rules", async () => {
    await client.create(widgets, widget({ size: "small" }));
    await expect(client.patch(widgets, metadata("w"), { spec: { size: "large" } })).rejects.toThrow(
      "size is immutable",
    );
  });

  test("keeps spec and status apart, and counts generations by the spec", async () => {
    await client.create(widgets, { ...widget({ size: "small" }), status: { a: 1 } } as never);
    const after = await client.patch(
      widgets,
      metadata("w"),
      { spec: { replicas: 2 }, status: { b: 2 } },
      { subresource: "status" },
    );
    expect(after).toMatchObject({
      spec: { replicas: 1 },
      status: { b: 2 },
      metadata: { generation: 1 },
    });
    const scaled = await client.patch(
      widgets,
      metadata("w"),
      { spec: { replicas: 2 } },
      { subresource: "scale" },
    );
    expect(scaled).toMatchObject({ kind: "Scale", spec: { replicas: 2 } });
    expect(await client.get(widgets, metadata("w"))).toMatchObject({ metadata: { generation: 2 } });
  });

  test("goes with its definition", async () => {
    await client.create(widgets, widget({ size: "small" }));
    await client.delete(resources.customResourceDefinitions, { name: "widgets.example.com" });
    await expect
      .poll(() => client.list(widgets).catch((error: Error) => error.message))
      .toContain("404 page not found");
  });
});

describe("server-side apply", () => {
  test("names what another manager owns, and takes it by force", async () => {
    const deployment = (replicas: number) => ({
      metadata: metadata("d"),
      spec: {
        replicas,
        selector: { matchLabels: { app: "d" } },
        template: {
          metadata: { labels: { app: "d" } },
          spec: { containers: [{ name: "main", image: "a/b:1" }] },
        },
      },
    });
    await client.apply(resources.deployments, deployment(1), { fieldManager: "one" });
    const conflict = client.apply(resources.deployments, deployment(2), {
      fieldManager: "two",
      force: false,
    });
    await expect(conflict).rejects.toThrow(
      'Apply failed with 1 conflict: conflict with "one": .spec.replicas',
    );
    const taken = await client.apply(resources.deployments, deployment(2), {
      fieldManager: "two",
    });
    expect(taken.spec?.replicas).toBe(2);
    const { replicas: _, ...rest } = deployment(0).spec;
    const left = await client.apply(
      resources.deployments,
      { metadata: metadata("d"), spec: rest },
      { fieldManager: "one" },
    );
    expect(left.spec?.replicas).toBe(2);
  });

  test("removes what its manager no longer applies", async () => {
    await client.apply(resources.configMaps, configMap("a", { x: "1", y: "2" }), {
      fieldManager: "one",
    });
    await client.apply(resources.configMaps, configMap("a", { y: "2" }), { fieldManager: "two" });
    const after = await client.apply(resources.configMaps, configMap("a", {}), {
      fieldManager: "one",
    });
    expect(after.data).toEqual({ y: "2" });
  });
});
