import { createApiServer } from "@spry/apiserver";
import { functionCrd, functionRevisions, functions } from "@spry/function";
import {
  KubeClient,
  type KubeObject,
  ManualClock,
  type PodTemplateSpec,
  type Resource,
  resources,
} from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { functionOf, settings } from "../../testing/objects.ts";
import { type ImagesInUse, imagesInUse } from "./images-in-use.ts";
import { startRegistryCleaning } from "./registry-cleaning.ts";

async function cluster() {
  const api = await createApiServer({ dataDir: ":memory:" });
  onTestFinished(() => api.close());
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.customResourceDefinitions, functionCrd());
  await client.apply(resources.namespaces, { metadata: { name: "shop" } });
  await client.apply(resources.serviceAccounts, { metadata: meta("default") });
  return client;
}

const sha = (letter: string) => `sha256:${letter.repeat(64)}`;
const meta = (name: string) => ({ name, namespace: "shop" });
const labels = { app: "x" };
const selector = { matchLabels: labels };
const template = (image: string, restartPolicy = "Always"): PodTemplateSpec => ({
  metadata: { labels },
  spec: { restartPolicy, containers: [{ name: "c", image }] },
});
const job = (image: string) => ({ template: template(image, "Never") });

const rows: { what: string; resource: Resource; object: KubeObject & object; is: string }[] = [
  {
    what: "a Pod",
    resource: resources.pods,
    object: {
      metadata: meta("pod"),
      spec: template(`registry.example/shop-a@${sha("a")}`).spec,
    } as KubeObject,
    is: `shop-a@${sha("a")}`,
  },
  {
    what: "a Pod's init container",
    resource: resources.pods,
    object: {
      metadata: meta("init"),
      spec: {
        containers: [{ name: "c", image: "x" }],
        initContainers: [{ name: "i", image: "localhost:5000/my/init" }],
      },
    } as KubeObject,
    is: "my/init:latest",
  },
  {
    what: "a Deployment",
    resource: resources.deployments,
    object: {
      metadata: meta("d"),
      spec: { selector, template: template("r:5000/a/b:v1") },
    } as KubeObject,
    is: "a/b:v1",
  },
  {
    what: "an old revision",
    resource: resources.replicaSets,
    object: {
      metadata: meta("rs"),
      spec: { replicas: 0, selector, template: template(`r.example/shop-b@${sha("b")}`) },
    } as KubeObject,
    is: `shop-b@${sha("b")}`,
  },
  {
    what: "a Function's history",
    resource: functionRevisions,
    object: {
      metadata: meta("hello-00001"),
      revision: 1,
      data: { spec: functionOf().spec, image: `r.example/shop/hello@${sha("e")}`, buildKey: "k" },
    } as KubeObject,
    is: `shop/hello@${sha("e")}`,
  },
  {
    what: "a Job",
    resource: resources.jobs,
    object: { metadata: meta("j"), spec: job("r.example/job:v1@" + sha("c")) } as KubeObject,
    is: `job@${sha("c")}`,
  },
  {
    what: "a CronJob",
    resource: resources.cronJobs,
    object: {
      metadata: meta("cj"),
      spec: { schedule: "@daily", jobTemplate: { spec: job("r.example/cron:v1") } },
    } as KubeObject,
    is: "cron:v1",
  },
  {
    what: "a Function's own base image",
    resource: functions,
    object: functionOf({ runtime: "nodejs24", runtimeImageOverride: "r.example/my/base:v2" }),
    is: "my/base:v2",
  },
];

test.each(rows)("$what is in use", async ({ resource, object, is }) => {
  const client = await cluster();
  const { resourceVersion: _version, uid: _uid, ...metadata } = object.metadata;
  await client.create(resource, { ...object, metadata });
  const found = await imagesInUse(client, settings);
  expect(found.references).toContain(is);
  expect(found.functions).toEqual(resource === functions ? ["shop/hello"] : []);
});

test("a finished build's image and what builds start from are in use", async () => {
  const client = await cluster();
  const spec = template("r.example/builder:1", "Never").spec ?? { containers: [] };
  await client.create(resources.pods, { metadata: meta("build"), spec });
  const message = JSON.stringify({ image: `push:5000/shop-hello@${sha("d")}` });
  const terminated = { exitCode: 0, message };
  const container = { name: "c", image: "", imageID: "", ready: false, restartCount: 0 };
  const status = { containerStatuses: [{ ...container, state: { terminated } }] };
  await client.patch(resources.pods, meta("build"), { status }, { subresource: "status" });
  const { references } = await imagesInUse(client, settings);
  expect(references).toContain(`shop-hello@${sha("d")}`);
  for (const own of ["spry/builder:1", "spry/nodejs24:1"]) expect(references).toContain(own);
});

test("nothing is cleaned by half a picture; the next time all is well", async () => {
  const client = await cluster();
  let broken = true;
  const partly = new KubeClient((request) =>
    broken && request.url.includes("/jobs")
      ? Promise.resolve(new Response("{}", { status: 500 }))
      : client.transport(request),
  );
  const clock = new ManualClock(0);
  const stop = new AbortController();
  const cleaned: ImagesInUse[] = [];
  const cleaning = startRegistryCleaning({
    client: partly,
    config: settings,
    clean(inUse) {
      cleaned.push(inUse);
      return Promise.resolve({ manifests: 0, blobs: 0, bytes: 0 });
    },
    clock,
    signal: stop.signal,
  });
  cleaning.request();
  await expect.poll(() => clock.advance(1000).then(() => clock.now())).toBeGreaterThan(15_000);
  expect(cleaned).toEqual([]);
  broken = false;
  await expect.poll(() => clock.advance(60_000).then(() => cleaned.length)).toBeGreaterThan(0);
  stop.abort();
  await cleaning.ended;
});
