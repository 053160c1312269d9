/** Which gateways there are in a cluster, by the slices of their Service. */
import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources, silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { GatewayPods } from "./gateway-pods.ts";

const namespace = "kyma-system";

test("one that leaves is listened to, and gets no new callers", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const stop = new AbortController();
  onTestFinished(async () => {
    stop.abort();
    await api.close();
  });
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  const slice = (service: string, endpoints: { addresses: string[]; conditions: object }[]) =>
    client.create(resources.endpointSlices, {
      metadata: {
        name: `${service}-abc`,
        namespace,
        labels: { "kubernetes.io/service-name": service },
      },
      addressType: "IPv4",
      endpoints,
      ports: [{ name: "http", port: 8080 }],
    });
  await slice("another", [{ addresses: ["10.0.0.9"], conditions: { ready: true } }]);
  await slice("serverless-gateway", [
    { addresses: ["10.0.0.1"], conditions: { ready: true, serving: true } },
    { addresses: ["10.0.0.2"], conditions: { ready: false, serving: true, terminating: true } },
    { addresses: ["10.0.0.3"], conditions: { ready: false, serving: false } },
  ]);
  const gateways = new GatewayPods(client, namespace, silentLogger);
  void gateways.run(stop.signal);
  await expect.poll(() => gateways.addresses).toEqual(["10.0.0.1"]);
  expect(gateways.adminUrls).toEqual(["http://10.0.0.1:8090", "http://10.0.0.2:8090"]);
});
