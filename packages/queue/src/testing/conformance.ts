/** What every queue does, whatever keeps it. */
import { describe, expect, test } from "vitest";
import {
  type Consumer,
  type ConsumerOptions,
  type Delivery,
  maxPageBytes,
  type NewMessage,
  type Queue,
  type QueueLimits,
  RecordChangedError,
} from "../index.ts";

export interface Driver {
  /** A queue that was never used before. */
  open(limits?: Partial<QueueLimits>): Promise<Queue>;
  /** The same one, after its process has been killed. */
  reopen(queue: Queue): Promise<Queue>;
}

export const message = (
  subject: string,
  key: string,
  rest: Partial<NewMessage> = {},
): NewMessage => ({
  subject,
  key,
  attributes: {},
  body: Buffer.from(key),
  ...rest,
});

const never = new AbortController().signal;
const keys = (deliveries: readonly Delivery[]) => deliveries.map(({ message: { key } }) => key);

/** Takes until there are `count`, which may need several calls. */
export async function take(consumer: Consumer, count: number, max = count): Promise<Delivery[]> {
  const all: Delivery[] = [];
  while (all.length < count) all.push(...(await consumer.next(max - all.length, never)));
  return all;
}

/** Whether there is nothing for it at present. */
export async function isIdle(consumer: Consumer): Promise<boolean> {
  const got = await consumer.next(1, AbortSignal.timeout(150));
  for (const delivery of got) delivery.retry(0);
  return got.length === 0;
}

export function conformance(driver: Driver): void {
  const withConsumer = async (options: Partial<ConsumerOptions> = {}) => {
    const queue = await driver.open();
    const consumer = await queue.consumer("c", { subjects: ["a"], ...options });
    return { queue, consumer };
  };

  describe("messages", () => {
    test("are handed out in the order of their acceptance, with what they were accepted with", async () => {
      const { queue, consumer } = await withConsumer();
      const before = Date.now();
      const appended = await queue.append([
        message("a", "1", { attributes: { type: "t", ü: "ö" }, body: Buffer.from([0, 255]) }),
        message("a", "2"),
      ]);
      const [first, second] = await take(consumer, 2);
      expect(first?.message).toMatchObject({
        subject: "a",
        key: "1",
        attributes: { type: "t", ü: "ö" },
        position: appended[0]?.position,
      });
      expect([...(first?.message.body ?? [])]).toEqual([0, 255]);
      expect(first?.message.at).toBeGreaterThanOrEqual(before - 1_000);
      expect(second?.message.position).toBeGreaterThan(first?.message.position ?? 0);
      expect([first?.attempt, second?.message.key]).toEqual([1, "2"]);
      await queue.close();
    });

    test("reach the consumers that name their subject, each of them", async () => {
      const { queue, consumer } = await withConsumer({ subjects: ["a", "b"] });
      const other = await queue.consumer("other", { subjects: ["b", "c"] });
      const all = await queue.consumer("all", { subjects: "all" });
      await queue.append(["a", "b", "c", "d"].map((subject) => message(subject, subject)));
      expect(keys(await take(consumer, 2))).toEqual(["a", "b"]);
      expect(keys(await take(other, 2))).toEqual(["b", "c"]);
      expect(keys(await take(all, 4))).toEqual(["a", "b", "c", "d"]);
      await queue.close();
    });

    test("are known by their keys for a while", async () => {
      const { queue, consumer } = await withConsumer();
      const [first] = await queue.append([message("a", "same")]);
      const [again] = await queue.append([message("a", "same")]);
      expect([first?.isDuplicate, again?.isDuplicate]).toEqual([false, true]);
      await queue.append([message("a", "end")]);
      expect(keys(await take(consumer, 2))).toEqual(["same", "end"]);
      await queue.close();
    });

    test("wake a consumer that waits", async () => {
      const { queue, consumer } = await withConsumer();
      const waiting = consumer.next(5, never);
      await queue.append([message("b", "not this one")]);
      await queue.append([message("a", "this one")]);
      expect(keys(await waiting)).toEqual(["this one"]);
      await queue.close();
    });

    test("can be read without a consumer", async () => {
      const { queue } = await withConsumer();
      const appended = await queue.append(["1", "2", "3"].map((key) => message("a", key)));
      const [first] = await queue.read({ after: 0, limit: 1 });
      const rest = await queue.read({ after: first?.position ?? 0, limit: 10 });
      expect([first, ...rest].map((one) => one?.key)).toEqual(["1", "2", "3"]);
      expect(await queue.head()).toBe(appended[2]?.position);
      await queue.close();
    });

    test("are read in pages of bounded size, and so are dead letters and records", async () => {
      const { queue, consumer } = await withConsumer();
      const body = Buffer.alloc(maxPageBytes / 4);
      for (let at = 0; at < 6; at++) await queue.append([message("a", String(at), { body })]);
      const read = async (after: number) => queue.read({ after, limit: 100 });
      const page = await read(0);
      expect(page.map(({ key }) => key)).toEqual(["0", "1", "2", "3"]);
      expect(await read(page.at(-1)?.position ?? 0)).toHaveLength(2);
      for (let left = 6; left > 0;) {
        for (const delivery of await take(consumer, 1, 2)) {
          delivery.bury({ reason: "Refused", message: "no" });
          left--;
        }
      }
      expect(await consumer.deadLetters({ limit: 100 })).toHaveLength(4);
      const value = "x".repeat(maxPageBytes / 4);
      for (const key of ["1", "2", "3", "4", "5"]) await queue.put({ bucket: "b", key, value });
      expect(await queue.list("b", { limit: 100 })).toHaveLength(4);
      await queue.close();
    });

    test("may have a time before which they are not delivered", async () => {
      const { queue, consumer } = await withConsumer();
      const notBefore = Date.now() + 400;
      await queue.append([message("a", "later", { notBefore }), message("a", "now")]);
      expect(keys(await take(consumer, 2))).toEqual(["now", "later"]);
      expect(Date.now()).toBeGreaterThanOrEqual(notBefore);
      await queue.close();
    });
  });

  describe("a consumer", () => {
    test("begins with what comes after it, or at the start", async () => {
      const queue = await driver.open();
      await queue.append([message("a", "before")]);
      const late = await queue.consumer("late", { subjects: ["a"] });
      const early = await queue.consumer("early", { subjects: ["a"], from: "start" });
      await queue.append([message("a", "after")]);
      expect(keys(await take(late, 1))).toEqual(["after"]);
      expect(keys(await take(early, 2))).toEqual(["before", "after"]);
      await queue.close();
    });

    test("does not get again what it has acknowledged, and gets the rest after a crash", async () => {
      const { queue, consumer } = await withConsumer();
      await queue.append(["1", "2", "3"].map((key) => message("a", key)));
      const [first, , third] = await take(consumer, 3);
      first?.ack();
      third?.ack();
      expect((await consumer.state()).waiting).toBe(1);
      const after = await driver.reopen(queue);
      const again = await after.consumer("c", { subjects: ["a"] });
      const [second] = await take(again, 1);
      expect([second?.message.key, second?.attempt]).toEqual(["2", 2]);
      second?.ack();
      expect(await isIdle(again)).toBe(true);
      await after.close();
    });

    test("gets a message again after the pause it asks for", async () => {
      const { queue, consumer } = await withConsumer();
      await queue.append([message("a", "1")]);
      const [first] = await take(consumer, 1);
      const begin = Date.now();
      first?.retry(300);
      expect(await isIdle(consumer)).toBe(true);
      expect(await consumer.state()).toMatchObject({ waiting: 1, retrying: 1, dead: 0 });
      const [second] = await take(consumer, 1);
      expect(Date.now() - begin).toBeGreaterThanOrEqual(295);
      expect(second?.attempt).toBe(2);
      await queue.close();
    });

    test.each([undefined, "who"])(
      "counts of a message's tries those that count, also after a crash (order by %s)",
      async (orderBy) => {
        const { queue, consumer } = await withConsumer({ orderBy });
        await queue.append([message("a", "1", { attributes: { who: "x" } })]);
        const seen: [number, number][] = [];
        const next = async (from: Consumer) => {
          const [delivery] = await take(from, 1);
          if (delivery) seen.push([delivery.attempt, delivery.failures]);
          return delivery;
        };
        (await next(consumer))?.retry(0, { counts: false });
        (await next(consumer))?.retry(0, { counts: false });
        (await next(consumer))?.retry(0);
        (await next(consumer))?.retry(0, { counts: false });
        await next(consumer);
        expect(seen).toEqual([
          [1, 0],
          [2, 0],
          [3, 0],
          [4, 1],
          [5, 1],
        ]);
        await consumer.state();
        const after = await driver.reopen(queue);
        const again = await after.consumer("c", { subjects: ["a"], orderBy });
        const cut = await next(again);
        // How often it was handed out is known to a server alone, which has not seen each.
        expect([cut?.failures, (cut?.attempt ?? 0) > 1]).toEqual([1, true]);
        cut?.retry(0);
        const last = await next(again);
        expect(last?.failures).toBe(2);
        last?.bury({ reason: "Refused", message: "no" });
        await expect.poll(() => again.deadLetters({ limit: 5 })).toMatchObject([{ attempts: 3 }]);
        await again.redrive("all");
        const redriven = await next(again);
        expect([redriven?.failures, redriven?.message.key]).toEqual([0, "1"]);
        redriven?.bury({ reason: "Refused", message: "no" }, { counts: false });
        await expect.poll(() => again.deadLetters({ limit: 5 })).toMatchObject([{ attempts: 0 }]);
        await after.close();
      },
    );

    test("passes over what its filter does not want", async () => {
      const { queue, consumer } = await withConsumer({
        filter: [{ prefix: { region: "eu-" } }, { not: { exact: { kind: "test" } } }],
      });
      const rows = [{ region: "eu-1" }, { region: "us-1" }, {}, { region: "eu-2", kind: "test" }];
      await queue.append(
        rows.map((attributes, at) => message("a", String(at), { attributes: { ...attributes } })),
      );
      await queue.append([message("a", "end", { attributes: { region: "eu-3" } })]);
      expect(keys(await take(consumer, 2))).toEqual(["0", "end"]);
      await queue.close();
    });

    test("that orders by an attribute gets one message of a value at a time, also when it fails", async () => {
      const { queue, consumer } = await withConsumer({ orderBy: "who" });
      const of = (who: string, key: string) => message("a", key, { attributes: { who } });
      await queue.append([of("x", "x1"), of("x", "x2"), of("y", "y1"), of("x", "x3")]);
      const first = await take(consumer, 2, 10);
      expect(keys(first).sort()).toEqual(["x1", "y1"]);
      expect(await isIdle(consumer)).toBe(true);
      first.find(({ message: { key } }) => key === "x1")?.retry(50);
      const [again] = await take(consumer, 1, 10);
      expect(again?.message.key).toBe("x1");
      again?.ack();
      const [second] = await take(consumer, 1, 10);
      expect(second?.message.key).toBe("x2");
      second?.bury({ reason: "Refused", message: "no" });
      expect(keys(await take(consumer, 1, 10))).toEqual(["x3"]);
      await queue.close();
    });

    test("that orders by a name which every object has, or fails at each message, harms no other", async () => {
      const { queue, consumer } = await withConsumer();
      const named = await queue.consumer("named", { subjects: ["a"], orderBy: "constructor" });
      const wrong = [5] as unknown as NonNullable<ConsumerOptions["filter"]>;
      const broken = await queue.consumer("broken", { subjects: ["a"], filter: wrong });
      const stop = new AbortController();
      const got = broken.next(1, stop.signal).catch(() => []);
      const taken = take(named, 2);
      await queue.append([message("a", "1"), message("a", "2")]);
      expect(keys(await take(consumer, 2))).toEqual(["1", "2"]);
      const redriven = await taken;
      expect(keys(redriven)).toEqual(["1", "2"]);
      redriven[0]?.bury({ reason: "Refused", message: "no" });
      expect(await named.redrive("all")).toBe(1);
      expect(keys(await take(named, 1))).toEqual(["1"]);
      stop.abort();
      expect(await got).toEqual([]);
      await queue.close();
    });

    test("goes back to a place, and gets what is kept from there again", async () => {
      const { queue, consumer } = await withConsumer();
      const appended = await queue.append(["1", "2", "3"].map((key) => message("a", key)));
      for (const delivery of await take(consumer, 3)) delivery.ack();
      await consumer.replay({ position: appended[1]?.position ?? 0 });
      expect(keys(await take(consumer, 2))).toEqual(["2", "3"]);
      await queue.close();
    });

    test("does not go back to before its creation, unless that is asked for", async () => {
      const queue = await driver.open();
      const [first] = await queue.append([message("a", "before")]);
      const consumer = await queue.consumer("c", { subjects: ["a"] });
      await queue.append([message("a", "1")]);
      for (const delivery of await take(consumer, 1)) delivery.ack();
      // Nor by another choice of messages.
      const changed = await queue.consumer("c", { subjects: ["a", "b"] });
      const position = first?.position ?? 0;
      for (const from of [{ position }, { time: 0 }]) {
        await changed.replay(from);
        const [again] = await take(changed, 1, 10);
        expect(again?.message.key).toBe("1");
        again?.ack();
      }
      await changed.replay({ position, beforeCreation: true });
      expect(keys(await take(changed, 2))).toEqual(["before", "1"]);
      await queue.close();
    });

    test("does not hold up another one", async () => {
      const { queue, consumer } = await withConsumer();
      const other = await queue.consumer("other", { subjects: ["a"] });
      await queue.append(Array.from({ length: 50 }, (_, at) => message("a", String(at))));
      await take(consumer, 10);
      for (const delivery of await take(other, 50)) delivery.ack();
      expect((await other.state()).waiting).toBe(0);
      expect(await consumer.state()).toMatchObject({ waiting: 50, inFlight: 10 });
      await queue.close();
    });

    test("that is removed is gone with what waited for it", async () => {
      const { queue, consumer } = await withConsumer();
      await queue.append([message("a", "1")]);
      await take(consumer, 1);
      expect((await (await queue.find("c"))?.state())?.inFlight).toBe(1);
      await queue.removeConsumer("c");
      expect(await queue.consumerNames()).toEqual([]);
      expect(await queue.find("c")).toBeUndefined();
      const again = await queue.consumer("c", { subjects: ["a"] });
      expect(await isIdle(again)).toBe(true);
      await queue.close();
    });

    test("stops waiting when it is asked to", async () => {
      const { queue, consumer } = await withConsumer();
      const stop = new AbortController();
      const waiting = consumer.next(1, stop.signal);
      stop.abort();
      expect(await waiting).toEqual([]);
      await queue.append([message("a", "1")]);
      expect(keys(await take(consumer, 1))).toEqual(["1"]);
      await queue.close();
    });
  });

  describe("dead letters", () => {
    const buried = async () => {
      const { queue, consumer } = await withConsumer();
      await queue.append([
        message("a", "1", { attributes: { type: "t" } }),
        message("a", "2"),
        message("a", "3"),
      ]);
      for (const delivery of await take(consumer, 3))
        delivery.bury({ reason: "Refused", message: "HTTP 400: no" });
      const letters = async () => consumer.deadLetters({ limit: 10 });
      return { queue, consumer, letters };
    };

    test("have the message, the reason and the number of attempts", async () => {
      const { queue, consumer, letters } = await buried();
      expect((await consumer.state()).dead).toBe(3);
      const [first, second] = await letters();
      expect(first).toMatchObject({ reason: "Refused", message: "HTTP 400: no", attempts: 1 });
      expect(first?.event).toMatchObject({ key: "1", subject: "a", attributes: { type: "t" } });
      expect((await consumer.deadLetter(second?.id ?? 0))?.event.key).toBe("2");
      expect(await consumer.deadLetter(1e9)).toBeUndefined();
      const page = await consumer.deadLetters({ after: first?.id ?? 0, limit: 1 });
      expect(page.map(({ event }) => event.key)).toEqual(["2"]);
      await queue.close();
    });

    test("are delivered again to their consumer alone", async () => {
      const { queue, consumer, letters } = await buried();
      const other = await queue.consumer("other", { subjects: "all" });
      const [first] = await letters();
      expect(await consumer.redrive([first?.id ?? 0])).toBe(1);
      const [again] = await take(consumer, 1);
      expect([again?.message.key, again?.attempt]).toEqual(["1", 1]);
      expect((await letters()).map(({ event }) => event.key)).toEqual(["2", "3"]);
      expect(await consumer.redrive("all")).toBe(2);
      expect(keys(await take(consumer, 2)).sort()).toEqual(["2", "3"]);
      expect(await isIdle(other)).toBe(true);
      await queue.close();
    });

    test("are discarded, some or all", async () => {
      const { queue, consumer, letters } = await buried();
      const [, second] = await letters();
      expect(await consumer.discard([second?.id ?? 0])).toBe(1);
      expect((await letters()).map(({ event }) => event.key)).toEqual(["1", "3"]);
      expect(await consumer.discard("all")).toBe(2);
      expect(await letters()).toEqual([]);
      await queue.close();
    });

    test("are there after a crash", async () => {
      const { queue, consumer } = await buried();
      await consumer.state();
      const after = await driver.reopen(queue);
      const again = await after.consumer("c", { subjects: ["a"] });
      expect(await again.deadLetters({ limit: 10 })).toHaveLength(3);
      await after.close();
    });
  });

  describe("records", () => {
    test("are kept with messages, replaced, listed and removed", async () => {
      const queue = await driver.open();
      await queue.append([message("a", "1")], [{ bucket: "b", key: "x", value: "1" }]);
      await queue.put({ bucket: "b", key: "y", value: "2" });
      await queue.put({ bucket: "b", key: "x", value: "3" });
      await queue.put({ bucket: "other", key: "x", value: "4" });
      const after = await driver.reopen(queue);
      expect(await after.get("b", "x")).toBe("3");
      const list = async (page: { after?: string; limit: number }) =>
        (await after.list("b", page)).map(({ key, value }) => `${key}=${value}`);
      expect(await list({ limit: 10 })).toEqual(["x=3", "y=2"]);
      expect(await list({ after: "x", limit: 1 })).toEqual(["y=2"]);
      await after.remove("b", "x");
      expect([await after.get("b", "x"), await after.get("b", "y")]).toEqual([undefined, "2"]);
      await after.close();
    });

    test("replace the value that their writer has read, or nothing is written", async () => {
      const { queue, consumer } = await withConsumer();
      const record = { bucket: "b", key: "x" };
      await queue.put({ ...record, value: "1" });
      await queue.put({ ...record, value: "2", replaces: "1" });
      await queue.append([message("a", "with it")], [{ ...record, value: "3", replaces: "2" }]);
      await expect(queue.put({ ...record, value: "4", replaces: "2" })).rejects.toThrow(
        RecordChangedError,
      );
      const late = queue.append(
        [message("a", "late")],
        [
          { ...record, key: "y", value: "1" },
          { ...record, value: "4", replaces: "2" },
        ],
      );
      await expect(late).rejects.toThrow("the record b/x has been changed or removed meanwhile");
      const missing = { ...record, key: "z", value: "1", replaces: "0" };
      await expect(queue.put(missing)).rejects.toThrow(RecordChangedError);
      expect(keys(await take(consumer, 1, 5))).toEqual(["with it"]);
      expect(await isIdle(consumer)).toBe(true);
      expect([await queue.get("b", "x"), await queue.get("b", "y")]).toEqual(["3", undefined]);
      await queue.close();
    });

    test("that several replace at once are replaced by one of them", async () => {
      const queue = await driver.open();
      const record = { bucket: "b", key: "x" };
      await queue.put({ ...record, value: "0" });
      const writers = ["1", "2", "3", "4", "5", "6"];
      const written = await Promise.allSettled(
        writers.map((value, at) =>
          queue.append(at % 2 === 0 ? [] : [message("a", value)], [
            { ...record, value, replaces: "0" },
          ]),
        ),
      );
      const winners = writers.filter((_, at) => written[at]?.status === "fulfilled");
      expect(winners).toEqual([await queue.get("b", "x")]);
      const losers = written.filter((one) => one.status === "rejected");
      expect(losers.every(({ reason }) => reason instanceof RecordChangedError)).toBe(true);
      await queue.close();
    });

    test("end at their time", async () => {
      const queue = await driver.open();
      await queue.put({ bucket: "b", key: "x", value: "1", expiresAt: Date.now() - 1 });
      await queue.put({ bucket: "b", key: "y", value: "1", expiresAt: Date.now() + 60_000 });
      expect(await queue.list("b", { limit: 5 })).toHaveLength(1);
      expect(await queue.get("b", "x")).toBeUndefined();
      await queue.close();
    });
  });

  test("messages that were accepted while consumers come and go are all delivered, once", async () => {
    const { queue, consumer } = await withConsumer();
    const seen = new Map<string, number>();
    const count = 2_000;
    const stop = new AbortController();
    const consuming = (async () => {
      while (seen.size < count) {
        for (const delivery of await consumer.next(50, stop.signal)) {
          seen.set(delivery.message.key, (seen.get(delivery.message.key) ?? 0) + 1);
          delivery.ack();
        }
      }
    })();
    const all = Array.from({ length: count }, (_, at) => message("a", String(at)));
    await Promise.all(all.map((one) => queue.append([one])));
    await consuming;
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect((await consumer.state()).waiting).toBe(0);
    await queue.close();
  });
}
