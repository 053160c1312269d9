/** Program for `bench/gateway.ts`: a gateway with one Service and one Route to the same address. */
import { createApiServer } from "@spry/apiserver";
import { knative, knativeNames, labels, type Revision } from "@spry/function";
import { createGateway } from "@spry/gateway";
import { KubeClient, resources } from "@spry/kube";
import { servingCrds } from "@spry/serving";

const port = Number(process.argv[2]);
const namespace = "default";
const api = await createApiServer({ dataDir: ":memory:" });
const client = new KubeClient(api.transport());
for (const definition of servingCrds()) {
  await client.create(resources.customResourceDefinitions, definition);
}

async function slice(service: string): Promise<void> {
  await client.create(resources.endpointSlices, {
    metadata: { name: service, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "http", port, protocol: "TCP" }],
  });
}

await client.create(resources.services, {
  metadata: { name: "hello", namespace, labels: { [labels.functionName]: "hello" } },
  spec: { ports: [{ name: "http", port: 80, targetPort: 8080 }] },
});
await slice("hello");
const revision = {
  metadata: { name: "kn-00001", namespace },
  spec: { containers: [{ image: "a" }] },
};
await client.create(knative.revisions, revision as Revision);
await slice(knativeNames.privateService("kn-00001"));
const target = { name: "kn", namespace };
await client.create(knative.routes, {
  metadata: target,
  spec: { traffic: [{ revisionName: "kn-00001", percent: 100 }] },
});
const traffic = [{ revisionName: "kn-00001", percent: 100 }];
await client.patch(knative.routes, target, { status: { traffic } }, { subresource: "status" });

const gateway = createGateway({ client });
const server = await gateway.listen({ host: "127.0.0.1", port: 0 });
await gateway.ready;
process.send?.(server.port);
process.on("disconnect", () => process.exit());
