/** The publisher's name inside the cluster: that of Kyma's Eventing, which Functions are given. */
import { type KubeClient, resources } from "@spry/kube";
import { systemNamespace } from "./system-objects.ts";

const name = "eventing-publisher-proxy";
const labels = { "app.kubernetes.io/managed-by": "spry" };
const portName = "http-publish";

/** A Service without a selector: the publisher is a process of the platform, and not a Pod. */
export async function announcePublisher(
  client: KubeClient,
  endpoint: { address: string; port: number },
): Promise<void> {
  const metadata = { name, namespace: systemNamespace, labels };
  await client.apply(
    resources.services,
    { metadata, spec: { ports: [{ name: portName, port: 80, targetPort: endpoint.port }] } },
    { force: true },
  );
  await client.apply(
    resources.endpointSlices,
    {
      metadata: {
        ...metadata,
        labels: {
          ...labels,
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "spry",
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [endpoint.address], conditions: { ready: true } }],
      ports: [{ name: portName, port: endpoint.port, protocol: "TCP" }],
    },
    { force: true },
  );
}
