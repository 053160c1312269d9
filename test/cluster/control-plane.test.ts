/** A real Kubernetes is there and does what the tests against it rely on. Leaves nothing behind in it. */
import { randomBytes } from "node:crypto";
import { functionCrd } from "@spry/function";
import { type Namespace, type Pod, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

const reason = whyNoCluster();
const cluster = new RealCluster();
const namespace = `spry-test-${randomBytes(4).toString("hex")}`;
const patience = { timeout: 60_000, interval: 100 };

describe.skipIf(reason !== undefined)(
  `control plane${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    beforeAll(async () => {
      await cluster.start();
      await cluster.client.create<Namespace>(resources.namespaces, {
        metadata: { name: namespace },
      });
    });
    afterAll(() => cluster.stop());

    test("is a Kubernetes of our time", async () => {
      const answer = await cluster.client.raw("GET", "/version");
      const { major, minor } = (await answer.json()) as { major: string; minor: string };
      expect(Number(major)).toBe(1);
      expect(Number.parseInt(minor, 10)).toBeGreaterThanOrEqual(34);
    });

    test("the namespaces of every cluster are there", async () => {
      const { items } = await cluster.client.list(resources.namespaces);
      const names = items.map(({ metadata }) => metadata.name);
      expect(names).toEqual(
        expect.arrayContaining(["default", "kube-node-lease", "kube-public", "kube-system"]),
      );
    });

    test("accepts the CustomResourceDefinition of Functions, rules and their costs included", async () => {
      const { client } = cluster;
      await client.apply(resources.customResourceDefinitions, functionCrd(), { dryRun: true });
    });

    test("controllers work: a new namespace gets its default ServiceAccount", async () => {
      const find = () =>
        cluster.client.get(resources.serviceAccounts, { namespace, name: "default" }).then(
          () => true,
          () => false,
        );
      await expect.poll(find, patience).toBe(true);
    });

    test("the scheduler works: a Pod that fits nowhere gets a condition that says so", async () => {
      const { client } = cluster;
      const target = { namespace, name: "nowhere" };
      await client.create<Pod>(resources.pods, {
        metadata: target,
        spec: {
          nodeSelector: { "spry.invalid/there-is-no-such-node": "true" },
          containers: [{ name: "main", image: "example.invalid/image" }],
        },
      });
      const verdict = async () => {
        const { status } = await client.get(resources.pods, target);
        return status?.conditions?.find(({ type }) => type === "PodScheduled")?.reason;
      };
      await expect.poll(verdict, patience).toBe("Unschedulable");
    });

    test("a namespace goes, with all that is in it", async () => {
      const { client } = cluster;
      await client.delete(resources.namespaces, { name: namespace });
      const isThere = async () => {
        const { items } = await client.list(resources.namespaces);
        return items.some(({ metadata }) => metadata.name === namespace);
      };
      await expect.poll(isThere, patience).toBe(false);
    });
  },
);
