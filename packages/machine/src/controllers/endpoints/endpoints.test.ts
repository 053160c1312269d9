/** `v1 Endpoints` of Pods, and EndpointSlices of Endpoints that people write themselves. */
import { type KubeClient, type Pod, resources } from "@spry/kube";
import { beforeEach, expect, test } from "vitest";
import { eventually } from "../../testing.ts";
import { namespace, setReady, startCluster } from "../testing.ts";

let client: KubeClient;
beforeEach(async () => {
  client = await startCluster();
});

const container = { name: "main", image: "x", ports: [{ name: "http", containerPort: 8080 }] };
const endpoints = () => client.get(resources.endpoints, { namespace, name: "web" });
const mirrors = async () => {
  const labelSelector =
    "endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io";
  return (await client.list(resources.endpointSlices, { namespace, labelSelector })).items;
};

function createService(spec: object): Promise<unknown> {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return client.create(resources.services, {
    metadata: { name: "web", namespace, labels: { team: "a" } },
    spec: { ports, ...spec },
  });
}

async function createPod(name: string, podIP: string): Promise<Pod> {
  const metadata = { name, namespace, labels: { app: "web" } };
  const spec = { containers: [container], nodeName: "n" };
  const pod = await client.create(resources.pods, { metadata, spec });
  const status = { phase: "Running", podIP, podIPs: [{ ip: podIP }] };
  await client.patch(resources.pods, { namespace, name }, { status }, { subresource: "status" });
  return pod;
}

test("a Service with a selector has the Pods' addresses, ready ones apart, and loses them with itself", async () => {
  await createService({ selector: { app: "web" } });
  await setReady(client, await createPod("a", "10.0.0.1"));
  await createPod("b", "10.0.0.2");
  await eventually(async () =>
    expect(await endpoints()).toMatchObject({
      metadata: {
        labels: { team: "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller" },
      },
      subsets: [
        {
          addresses: [{ ip: "10.0.0.1", nodeName: "n", targetRef: { kind: "Pod", name: "a" } }],
          notReadyAddresses: [{ ip: "10.0.0.2", targetRef: { name: "b" } }],
          ports: [{ name: "http", port: 8080, protocol: "TCP" }],
        },
      ],
    }),
  );
  expect(await mirrors()).toEqual([]);
  await client.delete(resources.services, { namespace, name: "web" });
  await eventually(async () =>
    expect(await endpoints().catch(({ reason }) => reason)).toBe("NotFound"),
  );
});

const own = (address: string, labels: Record<string, string> = {}) => ({
  metadata: { name: "web", namespace, labels },
  subsets: [{ addresses: [{ ip: address }], ports: [{ name: "http", port: 9090 }] }],
});

test("Endpoints of a Service without a selector are mirrored, followed, and go with them", async () => {
  await createService({});
  await client.create(resources.endpoints, own("10.0.0.9", { tier: "db" }));
  await eventually(async () =>
    expect(await mirrors()).toMatchObject([
      {
        metadata: {
          labels: { tier: "db", "kubernetes.io/service-name": "web" },
          ownerReferences: [{ kind: "Endpoints", name: "web" }],
        },
        addressType: "IPv4",
        endpoints: [{ addresses: ["10.0.0.9"], conditions: { ready: true } }],
        ports: [{ name: "http", port: 9090, protocol: "TCP" }],
      },
    ]),
  );
  const target = { namespace, name: "web" };
  await client.patch(resources.endpoints, target, { subsets: own("fd00::9").subsets });
  await eventually(async () =>
    expect(await mirrors()).toMatchObject([
      { addressType: "IPv6", endpoints: [{ addresses: ["fd00::9"] }] },
    ]),
  );
  await client.delete(resources.endpoints, target);
  await eventually(async () => expect(await mirrors()).toEqual([]));
});

test("Endpoints that ask not to be mirrored, or have no Service, are not", async () => {
  await createService({});
  const skip = { "endpointslice.kubernetes.io/skip-mirror": "true" };
  await client.create(resources.endpoints, own("10.0.0.9", skip));
  const stray = own("10.0.0.8");
  stray.metadata.name = "stray";
  await client.create(resources.endpoints, stray);
  // A mirror that comes afterwards shows that both have been looked at.
  await client.create(resources.services, {
    metadata: { name: "later", namespace },
    spec: { ports: [{ port: 80 }] },
  });
  const later = own("10.0.0.7");
  later.metadata.name = "later";
  await client.create(resources.endpoints, later);
  await eventually(async () => expect(await mirrors()).toHaveLength(1));
  expect((await mirrors())[0]?.metadata.labels?.["kubernetes.io/service-name"]).toBe("later");
});
