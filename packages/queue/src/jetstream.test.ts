import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { natsProgram, whyNoNats } from "../../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../../tools/nats-server/server.ts";
import { openJetStreamQueue, type Queue, QueueFullError, type QueueLimits } from "./index.ts";
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

  test("what is too old when it is handed out becomes a dead letter that says so", async () => {
    const queue = await open({ maxAgeMs: 1_500 });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    await queue.append([{ subject: "a", key: "1", attributes: {}, body: Buffer.from("1") }]);
    const [delivery] = await consumer.next(1, AbortSignal.timeout(20_000));
    delivery?.retry(2_000);
    await queue.append([{ subject: "b", key: "2", attributes: {}, body: Buffer.from("2") }]);
    const stop = new AbortController();
    const waiting = consumer.next(1, stop.signal);
    const letters = () => consumer.deadLetters({ limit: 5 });
    await expect.poll(async () => (await letters()).length, { timeout: 20_000 }).toBe(1);
    expect((await letters())[0]).toMatchObject({
      event: { key: "1" },
      reason: "Expired",
      message: "not delivered within 1.5 s",
      attempts: 1,
    });
    stop.abort();
    expect(await waiting).toEqual([]);
    await queue.close();
  });

  test("a stream that is full refuses, and takes again once what is in it has been handled", async () => {
    const queue = await open({ maxBytes: 1024 ** 2 });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const body = Buffer.alloc(64 * 1024);
    let accepted = 0;
    const add = () => queue.append([{ subject: "a", key: String(accepted), attributes: {}, body }]);
    const fill = async () => {
      for (;;) {
        await add();
        accepted++;
      }
    };
    await expect(fill()).rejects.toThrow(QueueFullError);
    expect(accepted).toBeGreaterThan(10);
    await expect(add()).rejects.toThrow(QueueFullError);
    for (let left = accepted; left > 0;)
      for (const delivery of await consumer.next(left, AbortSignal.timeout(20_000))) {
        delivery.ack();
        left--;
      }
    const isAccepted = () => add().then(Boolean, () => false);
    await expect.poll(isAccepted, { timeout: 20_000, interval: 100 }).toBe(true);
    await queue.close();
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
