/**
 * Events on a real cluster in a quorum of three NATS servers, while they and all other parts are killed; and then in a server that the
 * Serverless object names. `SPRY_TEST_SEED` asks for other moments and parts.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { serverlesses } from "@spry/controller";
import { type Resource, resources, type UnknownObject } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { controllerName } from "../../packages/cli/src/install/controller.ts";
import { eventingName } from "../../packages/cli/src/install/eventing-objects.ts";
import { natsName } from "../../packages/cli/src/install/nats-objects.ts";
import { whyNoNats } from "../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../tools/nats-server/server.ts";
import { ClusterEvents, system } from "../support/cluster-events.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { seeded } from "../support/seeded.ts";
import { untilTrue } from "../support/until-true.ts";

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
const { random, seed } = seeded(20);
const partName = (name: string) => `app.kubernetes.io/name=${name}`;
const deployed = "serverless.kyma-project.io/resource=deployment";
const parts: [labels: string, namespace?: string][] = [
  [partName(controllerName)],
  [partName(eventingName)],
  [partName(natsName)],
  [`${deployed},serverless.kyma-project.io/function-name=recorder`, namespace],
];
/** Of each part, in an order of the seed's. */
const killsOfPart = 3;
const kills = parts.length * killsOfPart;

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

  test(`in a quorum: nothing that was accepted is lost while Pods of each part are killed at random (seed ${seed})`, async () => {
    const recorded = new Map<string, number>();
    const recorder = createServer((request, response) => {
      let id = "";
      request.setEncoding("utf8").on("data", (chunk: string) => (id += chunk));
      request.on("end", () => {
        recorded.set(id, (recorded.get(id) ?? 0) + 1);
        response.end();
      });
    });
    await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
    const { port } = recorder.address() as AddressInfo;
    await events.recordAt(await cluster.share(port));
    const publishing = events.publish("random", 75);
    const killed: string[] = [];
    const inOrder = Array.from({ length: killsOfPart }, () => parts)
      .flat()
      .map((part) => ({ part, at: random() }))
      .sort((a, b) => a.at - b.at);
    for (const { part } of inOrder) {
      await new Promise((resolve) => setTimeout(resolve, 3_000 + random() * 3_000));
      const [labels, where] = part;
      killed.push((await events.killOneOf(labels, random, where)) ?? `none of ${labels}`);
    }
    const accepted = await publishing;
    const missing = () => accepted.filter((id) => !recorded.has(id));
    await untilTrue("all are recorded", async () => missing().length === 0, 180_000);
    recorder.close();
    const twice = [...recorded.values()].filter((count) => count > 1).length;
    console.log(
      `${accepted.length} events; ${twice} delivered more than once; killed: ${killed.join(", ")}`,
    );
    expect(accepted.length).toBeGreaterThan(100);
    // Those that were on their way when a process was killed, a hundred at most.
    expect(twice).toBeLessThanOrEqual(100 * kills);
    await events.untilDelivered(accepted);
  }, 500_000);

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
