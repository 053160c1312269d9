import { type ApiServer, createApiServer } from "@spry/apiserver";
import { KubeClient, type KubeObject, resources } from "@spry/kube";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { whyNotReady } from "./why-not-ready.ts";

const namespace = "spry-system";
const name = "controller";
const labels = { app: name };
let api: ApiServer;
let client: KubeClient;
let count = 0;

beforeAll(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport());
  await client.create(resources.namespaces, { metadata: { name: namespace } });
  await client.create(resources.serviceAccounts, { metadata: { name: "default", namespace } });
  const containers = [{ name: "main", image: "registry.example.com/spry:1" }];
  await client.create(resources.deployments, {
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
});
afterAll(() => api.close());
beforeEach(async () => {
  for (const { metadata } of (await client.list(resources.pods, { namespace })).items)
    await client.delete(
      resources.pods,
      { namespace, name: metadata.name ?? "" },
      { gracePeriodSeconds: 0 },
    );
});

const why = async () =>
  whyNotReady(client, await client.get(resources.deployments, { namespace, name }));

async function pod(status: object, spec: object = {}): Promise<string> {
  const podName = `controller-${count++}`;
  const containers = [{ name: "main", image: "registry.example.com/spry:1" }];
  const target = { name: podName, namespace };
  await client.create(resources.pods, {
    metadata: { ...target, labels },
    spec: { containers, nodeName: "n", ...spec },
  });
  await client.patch(resources.pods, target, { status }, { subresource: "status" });
  return podName;
}

const container = (state: object, more: object = {}) => ({
  containerStatuses: [
    {
      name: "main",
      image: "registry.example.com/spry:1",
      imageID: "",
      ready: false,
      restartCount: 0,
      state,
      ...more,
    },
  ],
});

async function warning(kind: string, about: string, message: string): Promise<void> {
  await client.create(resources.events, {
    metadata: { name: `${about}.${count++}`, namespace },
    involvedObject: { apiVersion: "v1", kind, name: about, namespace },
    type: "Warning",
    reason: "Test",
    message,
    lastTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, count)).toISOString(),
  });
}

test("a Deployment without Pods", async () => {
  expect(await why()).toBe("Deployment controller has no Pods: its controller does not make them");
});

test.each([
  ["ErrImagePull", "not found"],
  ["ImagePullBackOff", "Back-off pulling image"],
])("an image that cannot be pulled: %s", async (reason, message) => {
  const made = await pod(container({ waiting: { reason, message } }));
  expect(await why()).toBe(
    `Pod ${made}: ImagePullBackOff of image registry.example.com/spry:1: ${message}`,
  );
});

test("a Pod that crashes, with how it ended", async () => {
  const end = { exitCode: 1, reason: "Error", message: "cannot reach the registry\n" };
  const state = { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } };
  const made = await pod(container(state, { restartCount: 2, lastState: { terminated: end } }));
  expect(await why()).toBe(
    `Pod ${made} crashes: container main ended with exit code 1 (Error); its last line: cannot reach the registry`,
  );
});

test("a Pod that no node takes", async () => {
  const message = "0/1 nodes are available: 1 Insufficient memory.";
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
  const made = await pod({ conditions });
  expect(await why()).toBe(`Pod ${made} cannot be placed on a node: ${message}`);
});

test("a claim that is not bound, with the newest warning about it", async () => {
  const claim: KubeObject & { spec: object } = {
    metadata: { name: "registry", namespace },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "1Gi" } },
    },
  };
  const claims = {
    ...resources.pods,
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
  };
  await client.create(claims, claim as never);
  await warning("PersistentVolumeClaim", "registry", "waiting for a volume");
  await warning("PersistentVolumeClaim", "registry", 'storageclass "fast" not found');
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "registry" } }];
  await pod({}, { volumes });
  expect(await why()).toMatch(
    /^PersistentVolumeClaim registry \(storage class fast\) is \w+: storageclass "fast" not found$/,
  );
});

test("a claim that does not exist", async () => {
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "gone" } }];
  await pod({}, { volumes });
  expect(await why()).toBe("PersistentVolumeClaim gone is missing");
});

test("a container that runs and fails its probe", async () => {
  const made = await pod(container({ running: { startedAt: "2026-01-01T00:00:00Z" } }));
  await warning("Pod", made, "Readiness probe failed: HTTP probe failed with statuscode: 500");
  expect(await why()).toBe(
    `Pod ${made} runs and is not ready: Readiness probe failed: HTTP probe failed with statuscode: 500`,
  );
});

test("nothing that is wrong yet", async () => {
  await pod(container({ waiting: { reason: "ContainerCreating" } }));
  expect(await why()).toBeUndefined();
});
