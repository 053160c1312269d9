import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { natsProgram, whyNoNats } from "../../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../../tools/nats-server/server.ts";
import { openJetStreamQueue, type Queue, type QueueLimits } from "./index.ts";
import { conformance } from "./testing/conformance.ts";

const why = whyNoNats();

describe.skipIf(why)(why ?? natsProgram(), () => {
  let server: NatsServer | undefined;
  let count = 0;
  const names = new WeakMap<Queue, string>();

  beforeAll(async () => {
    [server] = await startNatsServers(1);
  });
  afterAll(() => server?.kill());

  const open = async (limits: Partial<QueueLimits> = {}, name = `q${++count}`): Promise<Queue> => {
    const queue = await openJetStreamQueue({
      servers: [server?.url ?? ""],
      name,
      limits: { maxBytes: 64 * 1024 ** 2, maxDeadBytes: 16 * 1024 ** 2, ...limits },
      ackWaitMs: 1_000,
    });
    names.set(queue, name);
    return queue;
  };

  test("a replay by another process reaches the one that takes, also for what it has just acknowledged", async () => {
    const takes = await open();
    const other = await open({}, names.get(takes));
    const consumer = await takes.consumer("c", { subjects: ["a"] });
    const bodies = ["1", "2", "3"];
    for (const key of bodies)
      await takes.append([{ subject: "a", key, attributes: {}, body: Buffer.from(key) }]);
    const taken = async () => {
      const keys: string[] = [];
      while (keys.length < bodies.length)
        for (const delivery of await consumer.next(10, AbortSignal.timeout(20_000))) {
          keys.push(delivery.message.key);
          delivery.ack();
        }
      return keys;
    };
    expect(await taken()).toEqual(bodies);
    await (await other.find("c"))?.replay({ position: 0 });
    expect(await taken()).toEqual(bodies);
    await expect.poll(async () => (await consumer.state()).waiting).toBe(0);
    expect(await (await other.find("c"))?.state()).toMatchObject({ waiting: 0, inFlight: 0 });
    await Promise.all([takes.close(), other.close()]);
  });

  test("what another process has in its hands is counted as in flight", async () => {
    const takes = await open();
    const other = await open({}, names.get(takes));
    const consumer = await takes.consumer("c", { subjects: ["a"] });
    await takes.append([{ subject: "a", key: "1", attributes: {}, body: Buffer.from("1") }]);
    const [delivery] = await consumer.next(1, AbortSignal.timeout(20_000));
    expect(await (await other.find("c"))?.state()).toMatchObject({ waiting: 1, inFlight: 1 });
    delivery?.ack();
    await Promise.all([takes.close(), other.close()]);
  });

  conformance({
    open,
    async reopen(queue) {
      const name = names.get(queue);
      (queue as Queue & { abandon(): void }).abandon();
      return open({}, name);
    },
  });
});
