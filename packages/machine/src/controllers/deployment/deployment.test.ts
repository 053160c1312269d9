import { type KubeClient, ManualClock, type Pod, resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { deploymentOf, eventually, podsOf } from "../../testing.ts";
import { expectGone, namespace, playUntil, reasonOf, rolledOut, startCluster } from "../testing.ts";

const revision = "deployment.kubernetes.io/revision";

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
