/** From a Service to what serves it: the whole room on a real API server in memory. */
import { knative } from "@spry/function";
import { resources } from "@spry/kube";
import { expect, test } from "vitest";
import { kservice, namespace, ServingPlatform } from "./testing/platform.ts";

test("a Service has a Configuration, a Revision with one Pod, and a Route that leads to it", async () => {
  await using platform = await ServingPlatform.start();
  await platform.apply(kservice("hello"));
  const deployment = await platform.deployment("hello-00001");
  expect(deployment.spec?.replicas).toBe(1);
  await platform.condition(knative.revisions, "hello-00001", "Ready=Unknown Deploying");
  await platform.rollOut("hello-00001");
  const service = await platform.condition(knative.services, "hello", "Ready=True");
  expect(service.status).toMatchObject({
    url: "http://hello.shop.localhost:8080",
    address: { url: "http://hello.shop.svc.cluster.local" },
    latestCreatedRevisionName: "hello-00001",
    latestReadyRevisionName: "hello-00001",
    traffic: [{ revisionName: "hello-00001", percent: 100, latestRevision: true }],
    observedGeneration: 1,
  });
  const placeholder = await platform.client.get(resources.services, { namespace, name: "hello" });
  expect(placeholder.spec?.selector).toBeUndefined();
});
