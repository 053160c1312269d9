import { KubeClient, resources, type UnknownObject } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";

let server: ApiServer;
let client: KubeClient;
beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

const metadata = { name: "a", namespace: "default" };

test("an autoscaler of autoscaling/v1 is one of v2, and back", async () => {
  const v1 = { ...resources.horizontalPodAutoscalers, version: "v1" };
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "d" };
  const spec = { scaleTargetRef, maxReplicas: 3, targetCPUUtilizationPercentage: 60 };
  await client.create(v1, { metadata, spec });
  const v2 = await client.get(resources.horizontalPodAutoscalers, metadata);
  expect(v2).toMatchObject({
    apiVersion: "autoscaling/v2",
    spec: {
      minReplicas: 1,
      maxReplicas: 3,
      metrics: [
        {
          type: "Resource",
          resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 60 } },
        },
      ],
    },
  });
  expect(await client.get(v1, metadata)).toMatchObject({ apiVersion: "autoscaling/v1", spec });
  const [listed] = (await client.list(v1)).items;
  expect(listed).toMatchObject({ apiVersion: "autoscaling/v1", spec });
});

test("an Event of events.k8s.io is the same as one of the core group", async () => {
  const events = {
    group: "events.k8s.io",
    version: "v1",
    kind: "Event",
    plural: "events",
    namespaced: true,
  };
  const regarding = { kind: "Pod", name: "p", namespace: "default" };
  const event = {
    metadata,
    eventTime: "2026-01-01T00:00:00.000000Z",
    regarding,
    note: "hello",
    reason: "Said",
    action: "Say",
    type: "Normal",
    reportingController: "c",
    reportingInstance: "c-1",
  };
  await client.create(events, event as never);
  expect(await client.get(resources.events, metadata)).toMatchObject({
    apiVersion: "v1",
    involvedObject: regarding,
    message: "hello",
    reportingComponent: "c",
  });
  const read = (await client.get(events, metadata)) as unknown as typeof event & UnknownObject;
  expect(read).toMatchObject({ regarding, note: "hello" });
  await expect(client.update(events, { ...read, note: "bye" } as never)).rejects.toThrow(
    'message: Invalid value: "bye": field is immutable',
  );
  const series = { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" };
  await client.update(events, { ...read, series } as never);
  const other = {
    ...event,
    metadata: { ...metadata, name: "b" },
    deprecatedCount: 1,
    eventTime: null,
  };
  await expect(client.create(events, other as never)).rejects.toThrow(
    'is invalid: [eventTime: Required value, count: Invalid value: "": needs to be unset]',
  );
});

test("amounts are stored in their canonical form", async () => {
  const limits = { cpu: 0.5, memory: "1024Mi" } as never;
  const containers = [{ name: "main", image: "a:1", resources: { limits } }];
  const pod = await client.create(resources.pods, { metadata, spec: { containers } });
  expect(pod.spec?.containers[0]?.resources).toEqual({
    limits: { cpu: "500m", memory: "1Gi" },
    requests: { cpu: "500m", memory: "1Gi" },
  });
});

test("one version of a kind is read as the other when its definition says they are alike", async () => {
  const schema = {
    openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  };
  const crd = {
    metadata: { name: "things.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing" },
      versions: [
        { name: "v1", served: true, storage: true, schema },
        { name: "v1beta1", served: true, storage: false, deprecated: true, schema },
      ],
    },
  };
  await client.create(resources.customResourceDefinitions, crd);
  const things = (version: string) => ({
    group: "example.com",
    version,
    kind: "Thing",
    plural: "things",
    namespaced: true,
  });
  await client.create(things("v1beta1"), { metadata, spec: { a: 1 } } as never);
  expect(await client.get(things("v1"), metadata)).toMatchObject({
    apiVersion: "example.com/v1",
    spec: { a: 1 },
  });
  const response = await client.raw("GET", "/apis/example.com/v1beta1/namespaces/default/things/a");
  expect(response.headers.get("warning")).toBe('299 - "example.com/v1beta1 Thing is deprecated"');
});
