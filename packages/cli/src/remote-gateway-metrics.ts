/** What the gateways of an installation have counted, by way of its API server and as its user. */
import { type ReadGatewayMetrics } from "@spry/dashboard";
import { KubeClient, resources, transportOrigin } from "@spry/kube";
import { gatewayName } from "./install/names.ts";

const namespace = "kyma-system";
const adminPort = 8090;

/** Rejects for users who may not reach these Pods, and where there are none. */
export const remoteGatewayMetrics: ReadGatewayMetrics = async (transport) => {
  const client = new KubeClient(transport);
  const labelSelector = `app.kubernetes.io/name=${gatewayName}`;
  const { items } = await client.list(resources.pods, { namespace, labelSelector });
  const running = items.filter(({ status }) => status?.phase === "Running");
  if (running.length === 0) throw new Error(`no gateway runs in ${namespace}`);
  return Promise.all(
    running.map(async ({ metadata }) => {
      const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}:${adminPort}/proxy/metrics`;
      const response = await transport(new Request(transportOrigin + path));
      if (!response.ok) throw new Error(`${metadata.name} responded with ${response.status}`);
      return response.text();
    }),
  );
};
