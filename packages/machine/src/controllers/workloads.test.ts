import { createApiServer } from "@spry/apiserver";
import {
  type Clock,
  controllerOf,
  type Deployment,
  isNotFound,
  KubeClient,
  type KubeObject,
  ManualClock,
  type ObjectMeta,
  type Pod,
  resources,
  type Resource,
  type Transport,
} from "@spry/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { deploymentOf, eventually, podsOf } from "../testing.ts";
import { startControllers } from "./start-controllers.ts";

const namespace = "default";
const revision = "deployment.kubernetes.io/revision";

/** Controllers on a real API server, without a node: the test plays the kubelet. */
async function startCluster(options: { clock?: Clock; kubelet?: Transport; rootCa?: string } = {}) {
  const { clock, kubelet, rootCa } = options;
  const server = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(server.transport());
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await server.close();
  });
  await startControllers({
    client,
    kubelet: () => kubelet,
    signal: ending.signal,
    ...(clock ? { clock } : {}),
    ...(rootCa ? { rootCa } : {}),
  });
  return client;
}

async function setReady(
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

const targetOf = ({ metadata }: KubeObject) => ({
  namespace: metadata.namespace,
  name: metadata.name ?? "",
});

/** Makes every Pod ready until the Deployment says what the check wants. */
async function playUntil(
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

const reasonOf = (deployment: Deployment, type: string) =>
  deployment.status?.conditions?.find((condition) => condition.type === type)?.reason;

const rolledOut = (replicas: number, generation?: number) => (deployment: Deployment) => {
  expect(deployment.status).toMatchObject({
    observedGeneration: generation ?? deployment.metadata.generation,
    replicas,
    updatedReplicas: replicas,
    availableReplicas: replicas,
  });
  expect(reasonOf(deployment, "Progressing")).toBe("NewReplicaSetAvailable");
  expect(reasonOf(deployment, "Available")).toBe("MinimumReplicasAvailable");
};

const setImage = (client: KubeClient, name: string, image: string) =>
  client.patch(
    resources.deployments,
    { namespace, name },
    {
      spec: { template: deploymentOf(name, image).spec?.template },
    },
  );

describe("a Deployment", () => {
  test("is scaled without a new ReplicaSet", async () => {
    const client = await startCluster();
    await client.create(resources.deployments, deploymentOf("web", "a:1", { replicas: 2 }));
    await playUntil(client, "web", rolledOut(2));
    await client.patch(
      resources.deployments,
      { namespace, name: "web" },
      { spec: { replicas: 5 } },
    );
    await playUntil(client, "web", rolledOut(5));
    await client.patch(
      resources.deployments,
      { namespace, name: "web" },
      { spec: { replicas: 1 } },
    );
    await playUntil(client, "web", rolledOut(1));
    expect((await client.list(resources.replicaSets, { namespace })).items).toHaveLength(1);
  });

  test("goes back to an earlier template with its ReplicaSet, as a new revision", async () => {
    const client = await startCluster();
    const created = await client.create(resources.deployments, deploymentOf("web", "a:1"));
    await playUntil(client, "web", rolledOut(1));
    await setImage(client, "web", "a:2");
    await playUntil(client, "web", rolledOut(1));
    // What `kubectl rollout undo` does: the earlier ReplicaSet's template without its hash.
    await client.patch(
      resources.deployments,
      { namespace, name: "web" },
      { spec: { template: created.spec?.template } },
    );
    const deployment = await playUntil(client, "web", rolledOut(1));
    expect(deployment.metadata.annotations?.[revision]).toBe("3");
    const { items } = await client.list(resources.replicaSets, { namespace });
    expect(
      Object.fromEntries(
        items.map((set) => [set.metadata.annotations?.[revision], set.spec?.replicas]),
      ),
    ).toEqual({ "2": 0, "3": 1 });
  });

  test("keeps only so many old ReplicaSets", async () => {
    const client = await startCluster();
    await client.create(
      resources.deployments,
      deploymentOf("web", "a:1", { revisionHistoryLimit: 1 }),
    );
    for (const image of ["a:2", "a:3", "a:4"]) {
      await playUntil(client, "web", rolledOut(1));
      await setImage(client, "web", image);
    }
    await playUntil(client, "web", rolledOut(1));
    await eventually(async () => {
      const { items } = await client.list(resources.replicaSets, { namespace });
      expect(items).toHaveLength(2);
    });
  });

  test("that is paused takes no step until it is resumed", async () => {
    const client = await startCluster();
    await client.create(resources.deployments, deploymentOf("web", "a:1"));
    await playUntil(client, "web", rolledOut(1));
    await client.patch(
      resources.deployments,
      { namespace, name: "web" },
      { spec: { paused: true } },
    );
    await setImage(client, "web", "a:2");
    await playUntil(client, "web", (deployment) => {
      expect(deployment.status?.observedGeneration).toBe(deployment.metadata.generation);
      expect(reasonOf(deployment, "Progressing")).toBe("DeploymentPaused");
    });
    expect((await client.list(resources.replicaSets, { namespace })).items).toHaveLength(1);
    await client.patch(
      resources.deployments,
      { namespace, name: "web" },
      { spec: { paused: null } },
    );
    await playUntil(client, "web", rolledOut(1));
    expect((await client.list(resources.replicaSets, { namespace })).items).toHaveLength(2);
  });

  test("with strategy Recreate has no Pod of two templates at a time", async () => {
    const client = await startCluster();
    const strategy = { type: "Recreate" };
    await client.create(
      resources.deployments,
      deploymentOf("web", "a:1", { replicas: 2, strategy }),
    );
    await playUntil(client, "web", rolledOut(2));
    await setImage(client, "web", "a:2");
    await playUntil(client, "web", (deployment, pods) => {
      const images = new Set(pods.map(({ spec }) => spec?.containers[0]?.image));
      expect(images.size, "templates at a time").toBeLessThanOrEqual(1);
      rolledOut(2)(deployment);
    });
  });

  test("whose new Pods never become ready goes on serving, and says that it has timed out", async () => {
    const clock = new ManualClock(Date.now());
    const client = await startCluster({ clock });
    await client.create(
      resources.deployments,
      deploymentOf("web", "a:1", { replicas: 2, progressDeadlineSeconds: 60 }),
    );
    await playUntil(client, "web", rolledOut(2));
    await setImage(client, "web", "bad:1");
    const isGood = (pod: Pod) => pod.spec?.containers[0]?.image === "a:1";
    await playUntil(
      client,
      "web",
      async (deployment) => {
        await clock.advance(10_000);
        expect(reasonOf(deployment, "Progressing")).toBe("ProgressDeadlineExceeded");
      },
      isGood,
    );
    const pods = await podsOf(client, "web");
    expect(pods.filter(isGood)).toHaveLength(2);
    expect(pods).toHaveLength(3);
  });

  test("that is deleted takes its ReplicaSets and Pods along", async () => {
    const client = await startCluster();
    await client.create(resources.deployments, deploymentOf("web", "a:1", { replicas: 2 }));
    await playUntil(client, "web", rolledOut(2));
    await client.delete(resources.deployments, { namespace, name: "web" });
    await expectGone(client, resources.replicaSets);
    await expectGone(client, resources.pods);
  });
});

async function expectGone(client: KubeClient, resource: Resource): Promise<void> {
  await eventually(async () =>
    expect((await client.list(resource, { namespace })).items).toEqual([]),
  );
}

describe("a ReplicaSet", () => {
  test("adopts Pods that fit, and lets go of those that no longer do", async () => {
    const client = await startCluster();
    const labels = { app: "web" };
    const container = { name: "main", image: "a:1" };
    await client.create(resources.pods, {
      metadata: { namespace, name: "orphan", labels },
      spec: { containers: [container] },
    });
    await client.create(resources.replicaSets, {
      metadata: { namespace, name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    });
    await eventually(async () => {
      const pods = await podsOf(client, "web");
      expect(pods.map((pod) => controllerOf(pod)?.name)).toEqual(["web", "web"]);
    });
    await client.patch(
      resources.pods,
      { namespace, name: "orphan" },
      { metadata: { labels: { app: "other" } } },
    );
    await eventually(async () => {
      expect(
        controllerOf(await client.get(resources.pods, { namespace, name: "orphan" })),
      ).toBeUndefined();
      expect(await podsOf(client, "web")).toHaveLength(2);
    });
  });

  test("never makes more Pods than asked, however often it is changed", async () => {
    const client = await startCluster();
    await client.create(resources.deployments, deploymentOf("web", "a:1", { replicas: 1 }));
    const names = new Set<string>();
    for (let replicas = 2; replicas <= 10; replicas++) {
      await client.patch(resources.deployments, { namespace, name: "web" }, { spec: { replicas } });
      const pods = await podsOf(client, "web");
      expect(pods.length).toBeLessThanOrEqual(replicas);
      for (const { metadata } of pods) names.add(metadata.name ?? "");
    }
    await eventually(async () => expect(await podsOf(client, "web")).toHaveLength(10));
    for (const { metadata } of await podsOf(client, "web")) names.add(metadata.name ?? "");
    expect(names.size).toBe(10);
  });
});

describe("a Job", () => {
  const jobOf = (spec: object) => ({
    metadata: { namespace, name: "work" },
    spec: {
      ...spec,
      template: {
        metadata: { labels: { app: "work" } },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image: "a:1" }] },
      },
    },
  });
  const finish = async (client: KubeClient, phase: "Succeeded" | "Failed", count = 1) => {
    const pods = (await podsOf(client, "work")).filter(
      (pod) => pod.status?.phase === "Pending" && !pod.metadata.deletionTimestamp,
    );
    for (const pod of pods.slice(0, count))
      await client.patch(
        resources.pods,
        targetOf(pod),
        { status: { phase } },
        { subresource: "status" },
      );
  };
  const get = (client: KubeClient) => client.get(resources.jobs, { namespace, name: "work" });

  test("runs so many Pods at a time, until so many have succeeded", async () => {
    const client = await startCluster();
    await client.create(resources.jobs, jobOf({ parallelism: 2, completions: 3 }));
    await eventually(async () => expect((await get(client)).status).toMatchObject({ active: 2 }));
    await finish(client, "Succeeded", 2);
    await eventually(async () =>
      expect((await get(client)).status).toMatchObject({ active: 1, succeeded: 2 }),
    );
    expect(await podsOf(client, "work")).toHaveLength(3);
    await finish(client, "Succeeded");
    await eventually(async () => {
      const { status } = await get(client);
      expect(status?.conditions?.map(({ type }) => type)).toEqual([
        "SuccessCriteriaMet",
        "Complete",
      ]);
      expect(status).toMatchObject({ succeeded: 3 });
      expect(status?.active).toBeUndefined();
    });
  });

  test("counts a Pod that is deleted after its success only once, and as success", async () => {
    const client = await startCluster();
    await client.create(resources.jobs, jobOf({ parallelism: 1, completions: 2 }));
    for (let done = 1; done <= 2; done++) {
      await eventually(async () => expect((await get(client)).status).toMatchObject({ active: 1 }));
      await finish(client, "Succeeded");
      for (const pod of await podsOf(client, "work"))
        if (pod.status?.phase === "Succeeded")
          await client.delete(resources.pods, targetOf(pod), { gracePeriodSeconds: 0 });
    }
    await eventually(async () =>
      expect((await get(client)).status).toMatchObject({ succeeded: 2 }),
    );
    expect((await get(client)).status?.conditions?.at(-1)?.type).toBe("Complete");
    await expectGone(client, resources.pods);
  });

  test("waits longer after each failure, and gives up at its limit", async () => {
    const clock = new ManualClock(Date.now());
    const client = await startCluster({ clock });
    await client.create(resources.jobs, jobOf({ backoffLimit: 1 }));
    await eventually(async () => expect(await podsOf(client, "work")).toHaveLength(1));
    await finish(client, "Failed");
    await eventually(async () => expect((await get(client)).status).toMatchObject({ failed: 1 }));
    await clock.advance(5_000);
    expect(await podsOf(client, "work")).toHaveLength(1);
    await clock.advance(6_000);
    await eventually(async () => expect(await podsOf(client, "work")).toHaveLength(2));
    await finish(client, "Failed");
    await eventually(async () => {
      const { status } = await get(client);
      expect(status?.conditions).toMatchObject([
        { type: "FailureTarget" },
        { type: "Failed", reason: "BackoffLimitExceeded" },
      ]);
      expect(status).toMatchObject({ failed: 2 });
    });
  });

  test("is ended at its deadline, with the Pods that still run", async () => {
    const clock = new ManualClock(Date.now());
    const client = await startCluster({ clock });
    await client.create(resources.jobs, jobOf({ activeDeadlineSeconds: 60 }));
    await eventually(async () => expect((await get(client)).status).toMatchObject({ active: 1 }));
    await clock.advance(61_000);
    await eventually(async () => {
      expect((await get(client)).status?.conditions?.at(-1)).toMatchObject({
        type: "Failed",
        reason: "DeadlineExceeded",
      });
    });
    await expectGone(client, resources.pods);
  });

  test("is deleted when its time to live after the end is over", async () => {
    const clock = new ManualClock(Date.now());
    const client = await startCluster({ clock });
    await client.create(resources.jobs, jobOf({ ttlSecondsAfterFinished: 30 }));
    await eventually(async () => expect(await podsOf(client, "work")).toHaveLength(1));
    await finish(client, "Succeeded");
    await eventually(async () => expect((await get(client)).status?.completionTime).toBeDefined());
    await clock.advance(20_000);
    await get(client);
    await clock.advance(11_000);
    await eventually(async () => expect(get(client)).rejects.toSatisfy(isNotFound));
    await expectGone(client, resources.pods);
  });

  test("that is suspended has no Pods, until it is resumed", async () => {
    const client = await startCluster();
    await client.create(resources.jobs, jobOf({ suspend: true }));
    await eventually(async () =>
      expect((await get(client)).status?.conditions).toMatchObject([
        { type: "Suspended", status: "True" },
      ]),
    );
    expect(await podsOf(client, "work")).toEqual([]);
    await client.patch(resources.jobs, { namespace, name: "work" }, { spec: { suspend: false } });
    await eventually(async () => expect(await podsOf(client, "work")).toHaveLength(1));
    await client.patch(resources.jobs, { namespace, name: "work" }, { spec: { suspend: true } });
    await expectGone(client, resources.pods);
    expect((await get(client)).status?.failed).toBeUndefined();
  });
});

describe("garbage collection", () => {
  const configMap = (name: string, owner?: KubeObject, more: Partial<ObjectMeta> = {}) => ({
    metadata: {
      namespace,
      name,
      ...(owner
        ? {
            ownerReferences: [
              {
                apiVersion: "v1",
                kind: "ConfigMap",
                name: owner.metadata.name ?? "",
                uid: owner.metadata.uid ?? "",
                blockOwnerDeletion: true,
              },
            ],
          }
        : {}),
      ...more,
    },
  });
  const names = async (client: KubeClient) =>
    (await client.list(resources.configMaps, { namespace })).items.map(
      ({ metadata }) => metadata.name,
    );

  test("deletes what hangs on a deleted object, to the last leaf", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    const child = await client.create(resources.configMaps, configMap("child", root));
    await client.create(resources.configMaps, configMap("grandchild", child));
    await client.delete(resources.configMaps, { namespace, name: "root" });
    await eventually(async () => expect(await names(client)).toEqual([]));
  });

  test("in the foreground, the owner goes last", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    await client.create(
      resources.configMaps,
      configMap("child", root, { finalizers: ["example.com/hold"] }),
    );
    await client.delete(
      resources.configMaps,
      { namespace, name: "root" },
      { propagationPolicy: "Foreground" },
    );
    await eventually(async () => {
      const child = await client.get(resources.configMaps, { namespace, name: "child" });
      expect(child.metadata.deletionTimestamp).toBeDefined();
    });
    expect(await names(client)).toEqual(["child", "root"]);
    await client.patch(
      resources.configMaps,
      { namespace, name: "child" },
      { metadata: { finalizers: null } },
    );
    await eventually(async () => expect(await names(client)).toEqual([]));
  });

  test("orphans are kept, without their owner", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    await client.create(resources.configMaps, configMap("child", root));
    await client.delete(
      resources.configMaps,
      { namespace, name: "root" },
      { propagationPolicy: "Orphan" },
    );
    await eventually(async () => expect(await names(client)).toEqual(["child"]));
    const child = await client.get(resources.configMaps, { namespace, name: "child" });
    expect(child.metadata.ownerReferences ?? []).toEqual([]);
  });

  test("an owner of the same name but another uid is none", async () => {
    const client = await startCluster();
    const root = await client.create(resources.configMaps, configMap("root"));
    const other = { metadata: { ...root.metadata, uid: "00000000-0000-0000-0000-000000000000" } };
    await client.create(resources.configMaps, configMap("child", other));
    await eventually(async () => expect(await names(client)).toEqual(["root"]));
  });

  test("of two owners, the one that is left is enough", async () => {
    const client = await startCluster();
    const [one, two] = [
      await client.create(resources.configMaps, configMap("one")),
      await client.create(resources.configMaps, configMap("two")),
    ];
    const ownerReferences = [one, two].flatMap(
      (owner) => configMap("x", owner).metadata.ownerReferences ?? [],
    );
    await client.create(resources.configMaps, configMap("child", undefined, { ownerReferences }));
    await client.delete(resources.configMaps, { namespace, name: "one" });
    await eventually(async () => {
      const child = await client.get(resources.configMaps, { namespace, name: "child" });
      expect(child.metadata.ownerReferences?.map(({ name }) => name)).toEqual(["two"]);
    });
  });

  test("kinds that are defined later are owners like any other", async () => {
    const client = await startCluster();
    const widgets: Resource = {
      group: "example.com",
      version: "v1",
      kind: "Widget",
      plural: "widgets",
      namespaced: true,
    };
    await client.create(resources.customResourceDefinitions, {
      metadata: { name: "widgets.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { kind: "Widget", plural: "widgets", singular: "widget", listKind: "WidgetList" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
          },
        ],
      },
    });
    const widget = await eventually(() =>
      client.create(widgets, { metadata: { namespace, name: "w" } }),
    );
    const ownerReferences = [
      { apiVersion: "example.com/v1", kind: "Widget", name: "w", uid: widget.metadata.uid ?? "" },
    ];
    await client.create(resources.configMaps, configMap("child", undefined, { ownerReferences }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await names(client)).toEqual(["child"]);
    await client.delete(widgets, { namespace, name: "w" });
    await eventually(async () => expect(await names(client)).toEqual([]));
  });
});

test("a Namespace has a ServiceAccount and the root certificate, and goes with all that is in it", async () => {
  const client = await startCluster({ rootCa: "PEM" });
  const name = "team";
  await client.create(resources.namespaces, { metadata: { name } });
  await eventually(async () => {
    await client.get(resources.serviceAccounts, { namespace: name, name: "default" });
    const ca = await client.get(resources.configMaps, {
      namespace: name,
      name: "kube-root-ca.crt",
    });
    expect(ca.data).toEqual({ "ca.crt": "PEM" });
  });
  await client.create(resources.secrets, { metadata: { namespace: name, name: "s" } });
  await client.delete(resources.namespaces, { name });
  await eventually(async () =>
    expect(client.get(resources.namespaces, { name })).rejects.toSatisfy(isNotFound),
  );
  expect((await client.list(resources.secrets, { namespace: name })).items).toEqual([]);
});

test("an autoscaler follows the CPU that Pods use, up at once and down after five minutes", async () => {
  const clock = new ManualClock(Date.now());
  const usage = { nanoCores: 0 };
  let uids: string[] = [];
  const kubelet: Transport = () =>
    Promise.resolve(
      Response.json({
        pods: uids.map((uid) => ({ podRef: { uid }, cpu: { usageNanoCores: usage.nanoCores } })),
      }),
    );
  const client = await startCluster({ clock, kubelet });
  await client.create(resources.nodes, {
    metadata: { name: "here" },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
  await client.patch(
    resources.nodes,
    { name: "here" },
    { status: { conditions: [{ type: "Ready", status: "True" }] } },
    { subresource: "status" },
  );
  const deployment = deploymentOf("web", "a:1");
  const container = deployment.spec?.template.spec?.containers[0];
  if (container) container.resources = { requests: { cpu: "100m" } };
  await client.create(resources.deployments, deployment);
  const settle = async (replicas: number) =>
    playUntil(client, "web", async (deployment, pods) => {
      const old = new Date(clock.now() - 60_000).toISOString();
      for (const pod of pods) if (!pod.status?.startTime) await setReady(client, pod, true, old);
      uids = pods.map(({ metadata }) => metadata.uid ?? "");
      await clock.advance(5_000);
      expect(deployment.status?.availableReplicas).toBe(replicas);
    });
  await settle(1);
  usage.nanoCores = 50e6;
  await client.create(resources.horizontalPodAutoscalers, {
    metadata: { namespace, name: "web" },
    spec: {
      minReplicas: 1,
      maxReplicas: 3,
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      metrics: [
        {
          type: "Resource",
          resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
        },
      ],
    },
  });
  const status = async () =>
    (await client.get(resources.horizontalPodAutoscalers, { namespace, name: "web" })).status;
  await eventually(async () => {
    await clock.advance(15_000);
    expect(await status()).toMatchObject({
      currentReplicas: 1,
      desiredReplicas: 1,
      currentMetrics: [{ resource: { current: { averageUtilization: 50, averageValue: "50m" } } }],
    });
  });
  usage.nanoCores = 400e6;
  await settle(3);
  expect((await status())?.conditions).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        type: "ScalingActive",
        status: "True",
        reason: "ValidMetricFound",
      }),
      expect.objectContaining({ type: "AbleToScale", status: "True" }),
    ]),
  );
  usage.nanoCores = 1e6;
  const shrinking = clock.now();
  await settle(1);
  expect(clock.now() - shrinking).toBeGreaterThan(270_000);
});
