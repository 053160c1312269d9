import { afterAll, describe, expect, test } from "vitest";
import { natsProgram, whyNoNats } from "../../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../../tools/nats-server/server.ts";
import { rounds } from "../../../test/kit/index.ts";
import { openJetStreamQueue } from "./index.ts";
import { message } from "./testing/conformance.ts";

const why = whyNoNats();

describe.skipIf(why)(why ?? natsProgram(), () => {
  const servers: NatsServer[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.kill())));

  test("each of three servers is killed while messages are published and taken: what was accepted is delivered", async () => {
    servers.push(...(await startNatsServers(3)));
    const queue = await openJetStreamQueue({
      servers: servers.map(({ url }) => url),
      replicas: 3,
      ackWaitMs: 3_000,
      limits: { maxBytes: 256 * 1024 ** 2, maxDeadBytes: 16 * 1024 ** 2 },
    });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const seen = new Map<string, number>();
    const stop = new AbortController();
    const consuming = (async () => {
      while (!stop.signal.aborted) {
        for (const delivery of await consumer.next(50, stop.signal)) {
          seen.set(delivery.message.key, (seen.get(delivery.message.key) ?? 0) + 1);
          delivery.ack();
        }
      }
    })();
    const accepted: string[] = [];
    let failed = 0;
    const over = new AbortController();
    let next = 0;
    const publish = async () => {
      while (!over.signal.aborted) {
        const key = String(next++);
        try {
          await queue.append([message("a", key)], next % 10 === 0 ? [record(key)] : []);
          accepted.push(key);
        } catch {
          failed++;
        }
      }
    };
    const publishing = Promise.all(Array.from({ length: 8 }, publish));
    const settled = async (count: number) =>
      expect.poll(() => accepted.length, { timeout: 60_000 }).toBeGreaterThan(count);
    const each = rounds({ quick: 200, full: 1_000 });
    for (const server of servers) {
      await settled(accepted.length + each);
      await server.kill();
      // Two of three are a quorum.
      await settled(accepted.length + each);
      await server.start();
    }
    over.abort();
    await publishing;
    const missing = () => accepted.filter((key) => !seen.has(key));
    await expect.poll(() => missing().length, { timeout: 60_000 }).toBe(0);
    for (const key of accepted.filter((_, at) => at % 100 === 0 && Number(accepted[at]) % 10 === 9))
      expect(await queue.get("records", key)).toBe(key);
    stop.abort();
    await consuming;
    const again = [...seen.values()].filter((times) => times > 1).length;
    console.log(
      `${accepted.length} accepted, ${failed} refused, ${again} delivered more than once`,
    );
    await queue.close();
  }, 300_000);
});

const record = (key: string) => ({ bucket: "records", key, value: key });
