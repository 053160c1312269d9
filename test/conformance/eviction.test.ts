/** Draining a node and looking at what runs there, with real kubectl; the test plays the node. */
import { resources, type Transport } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

const target = { namespace: "default", name: "web" };

describe.skipIf(!hasKubectl())("a node with one Pod that a budget protects", () => {
  let harness: Harness;
  let uid = "";

  beforeAll(async () => {
    const figures = {
      cpu: { usageNanoCores: 250_000_000 },
      memory: { workingSetBytes: 32 * 2 ** 20 },
    };
    const container = { name: "main", ...figures };
    const kubelet: Transport = () =>
      Promise.resolve(
        Response.json({ node: figures, pods: [{ podRef: { uid }, containers: [container] }] }),
      );
    harness = await startHarness({ kubelet: () => kubelet });
    const { client } = harness;
    const amount = { cpu: "2", memory: "1Gi" };
    const node = { metadata: { name: "here" }, status: { capacity: amount, allocatable: amount } };
    await client.create(resources.nodes, node);
    await client.patch(resources.nodes, { name: "here" }, node, { subresource: "status" });
    const pod = await client.create(resources.pods, {
      metadata: { ...target, labels: { app: "web" } },
      spec: {
        nodeName: "here",
        terminationGracePeriodSeconds: 0,
        containers: [{ name: "main", image: "a:1" }],
      },
    });
    uid = pod.metadata.uid ?? "";
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    await client.patch(resources.pods, target, { status }, { subresource: "status" });
    await client.create(resources.podDisruptionBudgets, {
      metadata: target,
      spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
    });
    await allow(0);
  });
  afterAll(() => harness.close());

  /** What the disruption controller says. */
  const allow = (disruptionsAllowed: number) =>
    harness.client.patch(
      resources.podDisruptionBudgets,
      target,
      {
        status: {
          disruptionsAllowed,
          currentHealthy: 1,
          desiredHealthy: 1 - disruptionsAllowed,
          expectedPods: 1,
          observedGeneration: 1,
        },
      },
      { subresource: "status" },
    );

  test("kubectl top shows what the Pod and the node use", async () => {
    expect(await harness.kubectl("top", "pods", "--no-headers")).toMatch(/^web\s+250m\s+32Mi\s*$/);
    expect(await harness.kubectl("top", "nodes", "--no-headers")).toMatch(
      /^here\s+250m\s+12%\s+32Mi\s+3%\s*$/,
    );
  });

  test("kubectl drain waits for the budget, and goes on when it allows", async () => {
    const drain = (timeout: string) =>
      harness.kubectlWith("", "drain", "here", "--force", `--timeout=${timeout}`);
    const refused = await drain("4s");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    await allow(1);
    const drained = await drain("20s");
    expect(drained.stderr).not.toContain("error");
    expect(drained.stdout).toContain("node/here drained");
    expect((await harness.client.list(resources.pods)).items).toEqual([]);
  });
});
