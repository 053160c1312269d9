import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { unansweredRequests } from "./gateway-log.ts";

const time = "2026-01-01T10:00:00.500Z";
const fields = {
  time,
  requestId: "r-1",
  method: "POST",
  path: "/orders",
  destination: "Function shop/orders",
  pod: "10.0.0.7:8080",
  cause: "the connection ended before there was a response",
  msg: "request was not answered",
};
const gatewayLog = [
  "not JSON, of r-1",
  JSON.stringify({ ...fields, msg: "request" }),
  JSON.stringify({ ...fields, destination: "Function other/orders" }),
  JSON.stringify({ ...fields, requestId: "r-11" }),
  JSON.stringify(fields),
];

/** A cluster with a gateway; `log`: its lines, undefined for one that has none yet. */
async function cluster(log: string[] | undefined) {
  const kubelet = async () =>
    log ? new Response(log.join("\n")) : new Response("is waiting to start", { status: 400 });
  const server = await createApiServer({ dataDir: ":memory:", kubelet: () => kubelet });
  onTestFinished(() => server.close());
  const client = new KubeClient(server.transport());
  const namespace = "kyma-system";
  await client.create(resources.namespaces, { metadata: { name: namespace } });
  await client.create(resources.serviceAccounts, { metadata: { namespace, name: "default" } });
  const labels = { "app.kubernetes.io/name": "serverless-gateway" };
  await client.create(resources.pods, {
    metadata: { namespace, name: "gateway-1", labels },
    spec: { nodeName: "node", containers: [{ name: "gateway", image: "a:1" }] },
  });
  return { server, client };
}

const orders = { namespace: "shop", name: "orders" };

test("a request that its Pod did not answer is found by its id, for its Function alone", async () => {
  const { client } = await cluster(gatewayLog);
  const found = await unansweredRequests(client, orders, { id: "r-1", pods: [] });
  const message = "POST /orders was not answered: the connection ended before there was a response";
  expect(found).toEqual([{ gateway: "gateway-1", time, message }]);
  expect(await unansweredRequests(client, orders, { id: "r-2", pods: [] })).toEqual([]);
});

test.each([
  ["2026-01-01T10:00:00Z", "10.0.0.7", true],
  ["2026-01-01T09:00:00Z", "10.0.0.7", false],
  ["2026-01-01T10:00:00Z", "10.0.0.8", false],
])("a container that ended at %s at %s is its reason: %s", async (finishedAt, podIP, isReason) => {
  const { client } = await cluster(gatewayLog);
  const terminated = { reason: "OOMKilled", exitCode: 137, finishedAt };
  const status = { podIP, containerStatuses: [{ name: "function", lastState: { terminated } }] };
  const containers = [{ name: "function", resources: { limits: { memory: "64Mi" } } }];
  const pod = { metadata: { name: "orders-1" }, spec: { containers }, status } as never;
  const [found] = (await unansweredRequests(client, orders, { id: "r-1", pods: [pod] })) ?? [];
  const reason =
    "; at that time the container of orders-1 ended: OOMKilled, exit code 137" +
    "; its memory limit (64Mi) is set in spec.resourceConfiguration.function";
  expect(found?.message.endsWith(reason)).toBe(isReason);
});

test("nothing is found where a gateway has no log, and where the user may not read it", async () => {
  const { client, server } = await cluster(undefined);
  expect(await unansweredRequests(client, orders, { id: "r-1", pods: [] })).toEqual([]);
  const stranger = new KubeClient(server.transport({ name: "stranger", groups: [] }));
  expect(await unansweredRequests(stranger, orders, { id: "r-1", pods: [] })).toBeUndefined();
});
