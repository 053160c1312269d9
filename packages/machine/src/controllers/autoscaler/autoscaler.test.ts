import { ManualClock, resources, type Transport } from "@spry/kube";
import { expect, test } from "vitest";
import { deploymentOf, eventually } from "../../testing.ts";
import { namespace, playUntil, setReady, startCluster } from "../testing.ts";

test("an autoscaler follows the CPU that Pods use, up at once and down after five minutes", async () => {
  const clock = new ManualClock(Date.now());
  const usage = { nanoCores: 0 };
  let uids: string[] = [];
  const kubelet: Transport = () =>
    Promise.resolve(
      Response.json({
        pods: uids.map((uid) => ({
          podRef: { uid },
          containers: [
            {
              name: "main",
              cpu: { usageNanoCores: usage.nanoCores },
              memory: { workingSetBytes: 64 * 2 ** 20 },
            },
          ],
        })),
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
