/** Events on a real cluster in a quorum of three NATS servers, each of which is killed; and then in a server that the Serverless object names. */
import { randomBytes } from "node:crypto";
import { serverlesses } from "@spry/controller";
import { type Resource, resources, type UnknownObject } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { natsName } from "../../packages/cli/src/install/eventing-objects.ts";
import { whyNoNats } from "../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../tools/nats-server/server.ts";
import { ClusterEvents, system } from "../support/cluster-events.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";

const reason = whyNoInstallation() ?? whyNoNats();
const cluster = new InstalledCluster();
const namespace = `quorum-${randomBytes(3).toString("hex")}`;
const events = new ClusterEvents(cluster, namespace);
const patience = { timeout: 120_000, interval: 500 };
const statefulSets: Resource<UnknownObject> = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  plural: "statefulsets",
  namespaced: true,
};
let external: NatsServer | undefined;

describe.skipIf(reason !== undefined)(`events${reason ? ` (skipped: ${reason})` : ""}`, () => {
  beforeAll(() => events.install(3), 900_000);
  afterAll(async () => {
    await cluster.stop();
    await external?.kill();
  }, 60_000);

  test("in a quorum: nothing that was accepted is lost while each of three servers is killed", async () => {
    const accepted = events.publish("quorum", 40);
    for (const index of [0, 1, 2]) {
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      await events.killPod(natsName, `${natsName}-${index}`);
      await expect.poll(async () => readyServers(), patience).toBe(3);
    }
    expect((await accepted).length).toBeGreaterThan(20);
    await events.untilDelivered(await accepted);
  }, 400_000);

  test("of a server that the Serverless object names, with credentials from a Secret", async () => {
    [external] = await startNatsServers(1, { authorization: "user: spry, password: outside" });
    const port = Number(new URL(external?.url ?? "").port);
    const address = await cluster.share(port);
    await cluster.client.create(resources.secrets, {
      metadata: { namespace: system, name: "my-nats" },
      data: { username: encode("spry"), password: encode("outside") },
    });
    const [object] = (await cluster.client.list(serverlesses)).items;
    const target = { namespace: system, name: object?.metadata.name ?? "" };
    const nats = {
      servers: [`nats://${address}`],
      secretName: "my-nats",
      allowPlaintext: true,
    };
    await cluster.client.patch(serverlesses, target, { spec: { eventing: { nats } } });
    const isRolledOut = async () => {
      const name = "serverless-eventing";
      const found = await cluster.client.get(resources.deployments, { namespace: system, name });
      const { status, spec, metadata } = found;
      const isMarked = Boolean(spec?.template.metadata?.annotations?.["eventing.spry.io/nats"]);
      const isCurrent = status?.observedGeneration === metadata.generation;
      const isWhole =
        status?.updatedReplicas === 2 && status.replicas === 2 && status.readyReplicas === 2;
      return isMarked && isCurrent && isWhole;
    };
    await expect.poll(isRolledOut, { timeout: 180_000, interval: 500 }).toBe(true);
    const accepted = await events.publish("outside", 3);
    expect(accepted.length).toBeGreaterThan(0);
    await events.untilDelivered(accepted);
    // The servers of the installation could be gone.
    const name = natsName;
    await cluster.client.patch(
      statefulSets,
      { namespace: system, name },
      { spec: { replicas: 0 } },
    );
    await expect.poll(async () => readyServers(), patience).toBe(0);
    const later = await events.publish("alone", 3);
    expect(later.length).toBeGreaterThan(0);
    await events.untilDelivered(later);
  }, 400_000);
});

const encode = (text: string): string => Buffer.from(text).toString("base64");

async function readyServers(): Promise<number> {
  const labelSelector = `app.kubernetes.io/name=${natsName}`;
  const { items } = await cluster.client.list(resources.pods, { namespace: system, labelSelector });
  return items.filter(({ metadata, status }) => {
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    return !metadata.deletionTimestamp && ready?.status === "True";
  }).length;
}
