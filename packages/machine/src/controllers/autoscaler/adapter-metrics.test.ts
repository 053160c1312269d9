/** An autoscaler on metrics of an adapter: a real TLS server behind the API server, registered as KEDA's is. */
import { once } from "node:events";
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { createApiServer } from "@spry/apiserver";
import { type KeyPair, certificateFor } from "../../../../../test/kit/index.ts";
import { KubeClient, ManualClock, type Resource, resources, type UnknownObject } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { deploymentOf, eventually } from "../../testing.ts";
import { startControllers } from "../start-controllers.ts";
import { namespace, playUntil, setReady } from "../testing.ts";

const apiServices: Resource<UnknownObject> = {
  group: "apiregistration.k8s.io",
  version: "v1",
  kind: "APIService",
  plural: "apiservices",
  namespaced: false,
};
const external = "/apis/external.metrics.k8s.io/v1beta1";
const custom = "/apis/custom.metrics.k8s.io/v1beta2";

/** Answers with what `values` holds for a path and its query. */
async function startAdapter(pair: KeyPair, values: Map<string, object[]>): Promise<number> {
  const server = createServer({ cert: pair.crt, key: pair.key }, ({ url = "" }, outgoing) => {
    const items = values.get(decodeURIComponent(url));
    if (items) return outgoing.end(JSON.stringify({ items }));
    if (url === external || url === custom)
      return outgoing.end(JSON.stringify({ kind: "APIResourceList", resources: [] }));
    outgoing.writeHead(404, { "content-type": "application/json" });
    const message = "no such metric";
    outgoing.end(
      JSON.stringify({
        kind: "Status",
        code: 404,
        reason: "NotFound",
        message,
        details: { kind: "x" },
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test("an autoscaler follows external, object and Pods metrics of an adapter", async () => {
  const clock = new ManualClock(Date.now());
  const pair = await certificateFor("adapter.default.svc");
  const values = new Map<string, object[]>();
  const port = await startAdapter(pair, values);
  const server = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(server.transport());
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await server.close();
  });
  await startControllers({ client, clock, signal: ending.signal });

  await client.create(resources.nodes, { metadata: { name: "here" } });
  const status = { conditions: [{ type: "Ready", status: "True" }] };
  await client.patch(resources.nodes, { name: "here" }, { status }, { subresource: "status" });
  await client.create(resources.deployments, deploymentOf("web", "a:1"));
  const settle = (replicas: number) =>
    playUntil(client, "web", async (deployment, pods) => {
      const old = new Date(clock.now() - 60_000).toISOString();
      for (const pod of pods) if (!pod.status?.startTime) await setReady(client, pod, true, old);
      await clock.advance(15_000);
      expect(deployment.status?.availableReplicas).toBe(replicas);
    });
  await settle(1);

  const queue = { name: "queue", selector: { matchLabels: { of: "orders" } } };
  const scaleOn = (metric: object) =>
    client.apply(
      resources.horizontalPodAutoscalers,
      {
        metadata: { namespace, name: "web" },
        spec: {
          maxReplicas: 4,
          behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
          metrics: [metric],
        },
      } as never,
      { fieldManager: "test", force: true },
    );
  const active = async () => {
    await clock.advance(15_000);
    const found = await client.get(resources.horizontalPodAutoscalers, { namespace, name: "web" });
    return {
      ...found.status?.conditions?.find(({ type }) => type === "ScalingActive"),
      metrics: found.status?.currentMetrics,
    };
  };
  const metric = {
    type: "External",
    external: { metric: queue, target: { type: "AverageValue", averageValue: "5" } },
  };
  await scaleOn(metric);
  await eventually(async () =>
    expect(await active()).toMatchObject({
      status: "False",
      reason: "FailedGetExternalMetric",
      message: expect.stringContaining(
        "the server could not find the requested resource (get queue.external.metrics.k8s.io)",
      ) as string,
    }),
  );

  const place = { namespace, name: "adapter" };
  await client.create(resources.services, { metadata: place, spec: { ports: [{ port: 443 }] } });
  await client.create(resources.endpointSlices, {
    metadata: { ...place, labels: { "kubernetes.io/service-name": "adapter" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"] }],
    ports: [{ port }],
  });
  for (const [group, version] of [
    ["external.metrics.k8s.io", "v1beta1"],
    ["custom.metrics.k8s.io", "v1beta2"],
  ])
    await client.create(apiServices, {
      metadata: { name: `${version}.${group}` },
      spec: {
        group,
        version,
        groupPriorityMinimum: 100,
        versionPriority: 100,
        service: place,
        caBundle: Buffer.from(pair.crt).toString("base64"),
      },
    });

  const queuePath = `${external}/namespaces/${namespace}/queue?labelSelector=of=orders`;
  values.set(queuePath, [{ value: "9" }, { value: "6" }]);
  await settle(3);
  await eventually(async () =>
    expect(await active()).toMatchObject({
      status: "True",
      reason: "ValidMetricFound",
      metrics: [{ type: "External", external: { metric: queue, current: { averageValue: "5" } } }],
    }),
  );
  values.set(queuePath, [{ value: "500m" }]);
  await settle(1);

  const describedObject = { apiVersion: "networking.k8s.io/v1", kind: "Ingress", name: "shop" };
  const target = { type: "Value", value: "100" };
  await scaleOn({
    type: "Object",
    object: { metric: { name: "requests" }, describedObject, target },
  });
  values.set(`${custom}/namespaces/${namespace}/ingresses.networking.k8s.io/shop/requests`, [
    { value: "200" },
  ]);
  await settle(4);

  await scaleOn({
    type: "Pods",
    pods: { metric: { name: "waiting" }, target: { type: "AverageValue", averageValue: "10" } },
  });
  await eventually(async () =>
    expect(await active()).toMatchObject({
      reason: "FailedGetPodsMetric",
      message: expect.stringContaining("no such metric") as string,
    }),
  );
  const pods = await client.list(resources.pods, { namespace });
  values.set(
    `${custom}/namespaces/${namespace}/pods/*/waiting?labelSelector=app=web`,
    pods.items.map(({ metadata }) => ({
      describedObject: { name: metadata.name },
      timestamp: new Date(clock.now()).toISOString(),
      value: "5",
    })),
  );
  // Half of the target for each Pod: half as many each time, down to one.
  await settle(1);
});
