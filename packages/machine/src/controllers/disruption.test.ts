import { type KubeClient, resources, StatusError } from "@spry/kube";
import { expect, test } from "vitest";
import { deploymentOf, eventually, podsOf } from "../testing.ts";
import { namespace, playUntil, rolledOut, setReady, startCluster, targetOf } from "./testing.ts";

const budget = { namespace, name: "web" };
const budgetOf = (spec: object) => ({
  metadata: budget,
  spec: { selector: { matchLabels: { app: "web" } }, ...spec },
});
const statusOf = async (client: KubeClient) =>
  (await client.get(resources.podDisruptionBudgets, budget)).status;

async function evict(client: KubeClient, name: string, query = ""): Promise<object> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction${query}`;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  return (await (await client.raw("POST", path, { body })).json()) as object;
}

async function startWeb(replicas: number): Promise<KubeClient> {
  const client = await startCluster();
  await client.create(resources.deployments, deploymentOf("web", "a:1", { replicas }));
  await playUntil(client, "web", rolledOut(replicas));
  return client;
}

test.each([
  { spec: { minAvailable: 2 }, desiredHealthy: 2, disruptionsAllowed: 1 },
  { spec: { minAvailable: "50%" }, desiredHealthy: 2, disruptionsAllowed: 1 },
  { spec: { minAvailable: "100%" }, desiredHealthy: 3, disruptionsAllowed: 0 },
  { spec: { maxUnavailable: 1 }, desiredHealthy: 2, disruptionsAllowed: 1 },
  { spec: { maxUnavailable: "34%" }, desiredHealthy: 1, disruptionsAllowed: 2 },
])("of three Pods, a budget with $spec allows $disruptionsAllowed to go", async (row) => {
  const client = await startWeb(3);
  await client.create(resources.podDisruptionBudgets, budgetOf(row.spec));
  const { desiredHealthy, disruptionsAllowed } = row;
  await eventually(async () =>
    expect(await statusOf(client)).toMatchObject({
      expectedPods: 3,
      currentHealthy: 3,
      desiredHealthy,
      disruptionsAllowed,
      observedGeneration: 1,
      conditions: [
        disruptionsAllowed > 0
          ? { type: "DisruptionAllowed", status: "True", reason: "SufficientPods" }
          : { type: "DisruptionAllowed", status: "False", reason: "InsufficientPods" },
      ],
    }),
  );
});

test("an eviction is refused while the budget is spent, and allowed again when Pods are back", async () => {
  const client = await startWeb(2);
  await client.create(resources.podDisruptionBudgets, budgetOf({ minAvailable: 1 }));
  await eventually(async () => expect(await statusOf(client)).toMatchObject({ currentHealthy: 2 }));
  const [first, second] = (await podsOf(client, "web")).map(({ metadata }) => metadata.name ?? "");
  // Tried out only: nothing is charged, no Pod is evicted.
  expect(await evict(client, first ?? "", "?dryRun=All")).toMatchObject({ status: "Success" });
  expect(await statusOf(client)).toMatchObject({ disruptionsAllowed: 1 });
  expect(await evict(client, first ?? "")).toMatchObject({ status: "Success" });
  const refused = await evict(client, second ?? "").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StatusError);
  expect((refused as StatusError).status).toMatchObject({
    code: 429,
    reason: "TooManyRequests",
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: { causes: [{ reason: "DisruptionBudget" }] },
  });
  await playUntil(client, "web", rolledOut(2));
  await eventually(async () =>
    expect(await statusOf(client)).toMatchObject({ disruptionsAllowed: 1 }),
  );
  expect((await statusOf(client))?.disruptedPods).toBeUndefined();
  expect(await evict(client, second ?? "")).toMatchObject({ status: "Success" });
});

test("a Pod that is not ready may go as the budget's policy says", async () => {
  const client = await startWeb(2);
  await client.create(resources.podDisruptionBudgets, budgetOf({ minAvailable: 2 }));
  const [pod] = await podsOf(client, "web");
  if (!pod) throw new Error("no Pod");
  await setReady(client, pod, false);
  await eventually(async () => expect(await statusOf(client)).toMatchObject({ currentHealthy: 1 }));
  const { name } = targetOf(pod);
  await expect(evict(client, name)).rejects.toMatchObject({
    status: {
      details: {
        causes: [{ message: "The disruption budget web needs 2 healthy pods and has 1 currently" }],
      },
    },
  });
  await client.patch(resources.podDisruptionBudgets, budget, {
    spec: { unhealthyPodEvictionPolicy: "AlwaysAllow" },
  });
  expect(await evict(client, name)).toMatchObject({ status: "Success" });
});
