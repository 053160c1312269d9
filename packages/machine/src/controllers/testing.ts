/** Set-up for tests of controllers: a real API server, no node. */
import { createApiServer } from "@spry/apiserver";
import {
  type Clock,
  type Deployment,
  KubeClient,
  type KubeObject,
  type Pod,
  resources,
  type Resource,
  type Transport,
} from "@spry/kube";
import { expect, onTestFinished } from "vitest";
import { eventually, podsOf } from "../testing.ts";
import { startControllers } from "./start-controllers.ts";

/** Where the tests of controllers put their objects. */
export const namespace = "default";

interface ClusterOptions {
  clock?: Clock;
  kubelet?: Transport;
  rootCa?: string;
  /** What is between the controllers and the API server. */
  between?: (transport: Transport) => Transport;
}

/** Controllers on a real API server, without a node: the test plays the kubelet. */
export async function startCluster(options: ClusterOptions = {}) {
  const { clock, kubelet, rootCa, between = (transport) => transport } = options;
  const server = await createApiServer({ dataDir: ":memory:", kubelet: () => kubelet });
  const client = new KubeClient(server.transport());
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await server.close();
  });
  await startControllers({
    client: new KubeClient(between(server.transport())),
    signal: ending.signal,
    ...(clock ? { clock } : {}),
    ...(rootCa ? { rootCa } : {}),
  });
  return client;
}

export async function setReady(
  client: KubeClient,
  pod: Pod,
  ready = true,
  startTime?: string,
): Promise<void> {
  const at = "2026-01-01T00:00:00Z";
  const status = {
    phase: "Running",
    ...(startTime ? { startTime } : {}),
    conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: at }],
  };
  await client.patch(resources.pods, targetOf(pod), { status }, { subresource: "status" });
}

export const targetOf = ({ metadata }: KubeObject) => ({
  namespace: metadata.namespace,
  name: metadata.name ?? "",
});

/** Makes every Pod ready until the Deployment says what the check wants. */
export async function playUntil(
  client: KubeClient,
  name: string,
  check: (deployment: Deployment, pods: Pod[]) => void | Promise<void>,
  isReady: (pod: Pod) => boolean = () => true,
) {
  return eventually(async () => {
    for (const pod of await podsOf(client, name)) {
      if (pod.metadata.deletionTimestamp)
        await client
          .delete(resources.pods, targetOf(pod), { gracePeriodSeconds: 0 })
          .catch(() => {});
      else if (
        isReady(pod) &&
        !pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True")
      )
        await setReady(client, pod).catch(() => {});
    }
    const deployment = await client.get(resources.deployments, { namespace, name });
    await check(deployment, await podsOf(client, name));
    return deployment;
  });
}

export const reasonOf = (deployment: Deployment, type: string) =>
  deployment.status?.conditions?.find((condition) => condition.type === type)?.reason;

export const rolledOut = (replicas: number, generation?: number) => (deployment: Deployment) => {
  expect(deployment.status).toMatchObject({
    observedGeneration: generation ?? deployment.metadata.generation,
    replicas,
    updatedReplicas: replicas,
    availableReplicas: replicas,
  });
  expect(reasonOf(deployment, "Progressing")).toBe("NewReplicaSetAvailable");
  expect(reasonOf(deployment, "Available")).toBe("MinimumReplicasAvailable");
};

export async function expectGone(client: KubeClient, resource: Resource): Promise<void> {
  await eventually(async () =>
    expect((await client.list(resource, { namespace })).items).toEqual([]),
  );
}
