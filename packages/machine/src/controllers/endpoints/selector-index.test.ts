import { createApiServer } from "@spry/apiserver";
import { Informer, KubeClient, type Pod, resources, type Service } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SelectorIndex } from "./selector-index.ts";

const stop = new AbortController();
let server: Awaited<ReturnType<typeof createApiServer>>;
let client: KubeClient;
let index: SelectorIndex;

beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
  const services = new Informer(client, resources.services);
  index = new SelectorIndex(services);
  void services.run(stop.signal);
  await services.synced;
});
afterAll(async () => {
  stop.abort();
  await server.close();
});

const pod = (labels: Record<string, string>, namespace = "default"): Pod => ({
  metadata: { name: "a", namespace, labels },
});

async function service(name: string, selector: Record<string, string>): Promise<void> {
  const object: Service = {
    metadata: { name, namespace: "default" },
    spec: { selector, ports: [{ port: 80 }] },
  };
  await client.apply(resources.services, object);
}

const found = (labels: Record<string, string>, namespace?: string) =>
  index
    .servicesOf(pod(labels, namespace))
    .filter((key) => key !== "default/kubernetes")
    .sort();

test("a Pod is selected by all whose labels it has, in whatever order they name them", async () => {
  await service("one", { app: "shop", tier: "web" });
  await service("same", { tier: "web", app: "shop" });
  await service("wide", { app: "shop" });
  await service("other", { app: "mail", tier: "web" });
  await expect
    .poll(() => found({ app: "shop", tier: "web", more: "x" }))
    .toEqual(["default/one", "default/same", "default/wide"]);
  expect(found({ app: "shop" })).toEqual(["default/wide"]);
  expect(found({ tier: "web" })).toEqual([]);
  expect(found({ app: "shop", tier: "web" }, "elsewhere")).toEqual([]);
});

test("a Service that changes or goes no longer selects what it did", async () => {
  await service("changing", { app: "before" });
  await expect.poll(() => found({ app: "before" })).toEqual(["default/changing"]);
  await service("changing", { app: "after" });
  await expect.poll(() => found({ app: "after" })).toEqual(["default/changing"]);
  expect(found({ app: "before" })).toEqual([]);
  await client.delete(resources.services, { namespace: "default", name: "changing" });
  await expect.poll(() => found({ app: "after" })).toEqual([]);
});

test("one without a selector selects nothing", async () => {
  await service("none", {});
  await service("last", { app: "last" });
  await expect.poll(() => found({ app: "last" })).toEqual(["default/last"]);
  expect(found({})).toEqual([]);
});
