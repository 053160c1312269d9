import { KubeClient, resources, type Transport } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../api-server.ts";

const path = "/apis/metrics.k8s.io/v1beta1";

/** A node that measures one container of the Pod with this uid. */
async function startServer() {
  const uids: string[] = [];
  const figures = {
    cpu: { time: "2026-01-01T00:00:00Z", usageNanoCores: 125_000_000 },
    memory: { time: "2026-01-01T00:00:00Z", workingSetBytes: 64 * 2 ** 20 },
  };
  const kubelet: Transport = () =>
    Promise.resolve(
      Response.json({
        node: { nodeName: "here", ...figures },
        pods: uids.map((uid) => ({
          podRef: { uid },
          ...figures,
          containers: [{ name: "main", ...figures }],
        })),
      }),
    );
  const server = await createApiServer({
    dataDir: ":memory:",
    kubelet: (node) => (node === "here" ? kubelet : undefined),
  });
  onTestFinished(() => server.close());
  const client = new KubeClient(server.transport());
  const get = async (at: string, accept = "application/json") =>
    (await (await client.raw("GET", path + at, { accept })).json()) as object;
  for (const name of ["here", "silent"])
    await client.create(resources.nodes, { metadata: { name } });
  for (const name of ["web", "idle"]) {
    const target = { namespace: "default", name };
    const { metadata } = await client.create(resources.pods, {
      metadata: { ...target, labels: { app: name } },
      spec: { nodeName: "here", containers: [{ name: "main", image: "a:1" }] },
    });
    if (name === "web") uids.push(metadata.uid ?? "");
    const status = { phase: "Running" };
    await client.patch(resources.pods, target, { status }, { subresource: "status" });
  }
  return get;
}

const usage = { cpu: "125000000n", memory: "65536Ki" };

test("a Pod's metrics are those that its node measures; one not measured yet has none", async () => {
  const get = await startServer();
  const web = {
    kind: "PodMetrics",
    metadata: { name: "web", namespace: "default", labels: { app: "web" } },
    timestamp: "2026-01-01T00:00:00Z",
    containers: [{ name: "main", usage }],
  };
  expect(await get("/namespaces/default/pods/web")).toMatchObject(web);
  expect(await get("/pods")).toMatchObject({ kind: "PodMetricsList", items: [web] });
  expect(await get("/pods?labelSelector=app%3Didle")).toMatchObject({ items: [] });
  expect(await get("/namespaces/other/pods")).toMatchObject({ items: [] });
  await expect(get("/namespaces/default/pods/idle")).rejects.toThrow(
    'podmetrics.metrics.k8s.io "default/idle" not found',
  );
});

test("a node that does not answer is left out", async () => {
  const get = await startServer();
  expect(await get("/nodes")).toMatchObject({
    kind: "NodeMetricsList",
    items: [{ kind: "NodeMetrics", metadata: { name: "here" }, usage }],
  });
});

test("discovery tells of metrics, and tables show their sums", async () => {
  const get = await startServer();
  expect(await get("")).toMatchObject({
    resources: [
      { name: "nodes", kind: "NodeMetrics", namespaced: false, verbs: ["get", "list"] },
      { name: "pods", kind: "PodMetrics", namespaced: true, verbs: ["get", "list"] },
    ],
  });
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  expect(await get("/pods", accept)).toMatchObject({
    kind: "Table",
    rows: [{ cells: ["web", "125m", "65536Ki", "5s"] }],
  });
});

test.each([
  "/namespaces/default/nodes",
  "/pods/web",
  "/namespaces/default/pods/web/status",
  "/other",
])("%s is no path of metrics", async (at) => {
  const get = await startServer();
  await expect(get(at)).rejects.toMatchObject({ code: 404 });
});
