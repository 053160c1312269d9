/** The official JavaScript client against the embedded API server, over TLS. */
import {
  AppsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  makeInformer,
  Watch,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

let harness: Harness;
let config: KubeConfig;

beforeAll(async () => {
  harness = await startHarness();
  config = new KubeConfig();
  config.loadFromFile(harness.kubeconfig);
});
afterAll(() => harness.close());

const namespace = "default";

test("creates, reads, lists, replaces and deletes", async () => {
  const core = config.makeApiClient(CoreV1Api);
  await core.createNamespacedConfigMap({
    namespace,
    body: { metadata: { name: "a" }, data: { x: "1" } },
  });
  const read = await core.readNamespacedConfigMap({ name: "a", namespace });
  expect(read.data).toEqual({ x: "1" });
  await core.replaceNamespacedConfigMap({
    name: "a",
    namespace,
    body: Object.assign(read, { data: { x: "2" } }),
  });
  const stale = core.replaceNamespacedConfigMap({
    name: "a",
    namespace,
    body: Object.assign(read, { data: { x: "3" } }),
  });
  await expect(stale).rejects.toMatchObject({ code: 409 });
  const list = await core.listNamespacedConfigMap({ namespace });
  expect(list.items.map((each) => each.data)).toEqual([{ x: "2" }]);
  await core.deleteNamespacedConfigMap({ name: "a", namespace });
  await expect(core.readNamespacedConfigMap({ name: "a", namespace })).rejects.toMatchObject({
    code: 404,
  });
});

test("reads defaults into its types", async () => {
  const apps = config.makeApiClient(AppsV1Api);
  const labels = { app: "d" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "a:1" }] } };
  const created = await apps.createNamespacedDeployment({
    namespace,
    body: { metadata: { name: "d" }, spec: { selector: { matchLabels: labels }, template } },
  });
  expect(created.spec?.strategy?.rollingUpdate?.maxSurge).toBe("25%");
  expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date);
});

test("an informer hears of changes", async () => {
  const core = config.makeApiClient(CoreV1Api);
  const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, () =>
    core.listNamespacedSecret({ namespace }),
  );
  const seen: string[] = [];
  informer.on("add", (secret) => void seen.push(`add ${secret.metadata?.name}`));
  informer.on("delete", (secret) => void seen.push(`delete ${secret.metadata?.name}`));
  await informer.start();
  await core.createNamespacedSecret({
    namespace,
    body: { metadata: { name: "s" }, stringData: { a: "b" } },
  });
  await core.deleteNamespacedSecret({ name: "s", namespace });
  await expect.poll(() => seen).toEqual(["add s", "delete s"]);
  await informer.stop();
});

test("a watch from a version that is forgotten ends with 410", async () => {
  const errors: unknown[] = [];
  const ended = new Promise<void>((resolve) => {
    void new Watch(config).watch(
      "/api/v1/configmaps",
      { resourceVersion: "999999" },
      () => {},
      (error) => {
        errors.push(error);
        resolve();
      },
    );
  });
  await ended;
  expect(errors).toHaveLength(1);
});

test("works with kinds of a CustomResourceDefinition", async () => {
  const schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  await harness.kubectlWith(
    JSON.stringify({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "gadgets.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "gadgets", kind: "Gadget" },
        versions: [
          { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } },
        ],
      },
    }),
    "apply",
    "-f",
    "-",
  );
  const custom = config.makeApiClient(CustomObjectsApi);
  const scope = { group: "example.com", version: "v1", namespace, plural: "gadgets" };
  const body = {
    apiVersion: "example.com/v1",
    kind: "Gadget",
    metadata: { name: "g" },
    spec: { any: [1, "x"] },
  };
  await custom.createNamespacedCustomObject({ ...scope, body });
  expect(await custom.getNamespacedCustomObject({ ...scope, name: "g" })).toMatchObject({
    spec: { any: [1, "x"] },
  });
});
