import { isNotFound, type KubeClient, ManualClock, resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { eventually, podsOf } from "../../testing.ts";
import { expectGone, namespace, startCluster, targetOf } from "../testing.ts";

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
  /** Ends so many of the Pods that run, once there are so many. */
  const finish = async (client: KubeClient, phase: "Succeeded" | "Failed", count = 1) => {
    const pods = await eventually(async () => {
      const running = (await podsOf(client, "work")).filter(
        (pod) => pod.status?.phase === "Pending" && !pod.metadata.deletionTimestamp,
      );
      expect(running.length).toBeGreaterThanOrEqual(count);
      return running;
    });
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
    await eventually(async () => {
      await clock.advance(6_000);
      expect(await podsOf(client, "work")).toHaveLength(2);
    });
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
    await eventually(async () => {
      await clock.advance(61_000);
      expect((await get(client)).status?.conditions?.at(-1)).toMatchObject({
        type: "Failed",
        reason: "DeadlineExceeded",
      });
      expect((await get(client)).status).toMatchObject({ failed: 1 });
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
    await eventually(async () => {
      await clock.advance(11_000);
      await expect(get(client)).rejects.toSatisfy(isNotFound);
    });
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
