/** Whose Knative Serving a cluster has: ours, or another installation's, to which everything is left. */
import { createApiServer } from "@spry/apiserver";
import { knative } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { servingCrds } from "./crds.ts";
import { type Ownership } from "./definitions.ts";
import { keepServing } from "./keep-serving.ts";
import { kservice, namespace } from "./testing/platform.ts";

const deadlineMs = 10_000;

async function cluster() {
  const api = await createApiServer({ dataDir: ":memory:" });
  const stop = new AbortController();
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  const reported: Ownership[] = [];
  let ended: Promise<void> | undefined;
  onTestFinished(async () => {
    stop.abort();
    await ended;
    await api.close();
  });
  const start = () => {
    ended = keepServing({
      client: new KubeClient(api.transport(), { fieldManager: "spry" }),
      gateways: () => [],
      domain: { name: "localhost" },
      onOwnership: (ownership) => reported.push(ownership),
      signal: stop.signal,
    });
  };
  return { client, reported, start };
}

async function until(what: string, ask: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** As `kubectl apply -f serving-crds.yaml` of Knative leaves them. */
const knatives = { "app.kubernetes.io/name": "knative-serving", "knative.dev/crd-install": "true" };

test("definitions of another installation are not touched, and nothing is served", async () => {
  const { client, reported, start } = await cluster();
  for (const { metadata, spec } of servingCrds())
    await client.apply(resources.customResourceDefinitions, {
      metadata: { name: metadata.name ?? "", labels: knatives },
      spec,
    });
  start();
  await until("the verdict", () => reported.length > 0);
  expect(reported).toEqual(["foreign"]);
  await client.create(knative.services, kservice("hello"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect((await client.list(knative.configurations)).items).toEqual([]);
  const { items } = await client.list(resources.customResourceDefinitions);
  for (const { metadata } of items) expect(metadata.labels).toEqual(knatives);
});

test("our room ends when another installation comes, and is back when that has gone", async () => {
  const { client, reported, start } = await cluster();
  start();
  await until("the verdict", () => reported.includes("ours"));
  const [service] = servingCrds();
  const name = service?.metadata.name ?? "";
  const label = (labels: object) =>
    client.patch(resources.customResourceDefinitions, { name }, { metadata: { labels } });
  await label(knatives);
  await until("the end", () => reported.at(-1) === "foreign");
  await client.create(knative.services, kservice("hello"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect((await client.list(knative.configurations)).items).toEqual([]);
  await label({ "app.kubernetes.io/name": null, "knative.dev/crd-install": null });
  await until("the room again", async () => {
    return (await client.list(knative.configurations)).items.length === 1;
  });
});
