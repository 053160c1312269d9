import { cpSync, mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type Clock, ManualClock, systemClock } from "@spry/kube";
import {
  type Consumer,
  type Delivery,
  openSqliteQueue,
  type Queue,
  QueueFullError,
  type QueueLimits,
  QueueUnavailableError,
} from "./index.ts";
import { conformance, message, take } from "./testing/conformance.ts";

const fresh = () => mkdtempSync(path.join(tmpdir(), "queue-"));
const directories = new WeakMap<Queue, string>();

async function open(limits: Partial<QueueLimits> = {}, directory = fresh()): Promise<Queue> {
  const queue = await openSqliteQueue({ directory, limits });
  directories.set(queue, directory);
  return queue;
}

conformance({
  open,
  async reopen(queue) {
    // What a process has written by the time it is killed is what its files have then.
    await queue.head();
    const copy = fresh();
    cpSync(directories.get(queue) ?? "", copy, { recursive: true });
    await queue.close();
    return open({}, copy);
  },
});

describe("what is too old", () => {
  const limits = { maxAgeMs: 60_000, duplicatesMs: 10_000 };

  test("becomes a dead letter of those who have not handled it, and is removed", async () => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const done = await queue.consumer("done", { subjects: ["a"] });
    await queue.append([message("a", "1"), message("a", "2"), message("b", "nobody's")]);
    const [first] = await take(consumer, 1);
    first?.retry(3_600_000);
    for (const delivery of await take(done, 2)) delivery.ack();
    await queue.head();
    await clock.advance(90_000);
    const letters = await consumer.deadLetters({ limit: 5 });
    expect(letters.map(({ event, reason, attempts }) => [event.key, reason, attempts])).toEqual([
      ["1", "Expired", 1],
      ["2", "NeverReached", 0],
    ]);
    expect(letters[0]?.message).toBe("not delivered within 60 s");
    expect(letters[1]?.message).toContain("60 s: no try has reached its receiver");
    expect(await done.deadLetters({ limit: 5 })).toEqual([]);
    expect((await queue.state()).messages).toBe(0);
    await queue.close();
  });

  test("is counted from when it may be handed out", async () => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const notBefore = clock.now() + 100_000;
    await queue.append([message("a", "1", { notBefore }), message("a", "2", { notBefore })]);
    const seen = consumer.next(2, AbortSignal.timeout(20_000));
    await queue.head();
    await clock.advance(99_000);
    expect(await consumer.deadLetters({ limit: 5 })).toEqual([]);
    await clock.advance(2_000);
    const [first] = await seen;
    expect(first?.message.key).toBe("1");
    first?.retry(3_600_000, { counts: false });
    await queue.head();
    await clock.advance(90_000);
    const letters = await consumer.deadLetters({ limit: 5 });
    expect(letters.map(({ reason }) => reason)).toContain("NeverReached");
    await queue.close();
  });

  test("may be so earlier for a consumer with a deadline of its own", async () => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), clock });
    const consumer = await queue.consumer("c", { subjects: ["a"], deadlineMs: 30_000 });
    const other = await queue.consumer("other", { subjects: ["a"] });
    await queue.append(["1", "2", "3"].map((key) => message("a", key)));
    const [first, second] = await take(consumer, 2);
    first?.retry(1_000);
    second?.retry(3_600_000, { counts: false });
    await queue.head();
    await clock.advance(20_000);
    await queue.append([message("a", "4")]);
    await clock.advance(20_000);
    const letters = await consumer.deadLetters({ limit: 5 });
    expect(letters.map(({ event, reason, attempts }) => [event.key, reason, attempts])).toEqual([
      ["1", "DeadlineExceeded", 1],
      ["2", "NeverReached", 0],
      ["3", "NeverReached", 0],
    ]);
    expect((await take(consumer, 1)).map(({ message: { key } }) => key)).toEqual(["4"]);
    expect(await other.state()).toMatchObject({ waiting: 4, dead: 0 });
    await queue.close();
  });

  test("is a new message under a key that was used before", async () => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock });
    await queue.append([message("a", "key")]);
    await clock.advance(9_000);
    const [known] = await queue.append([message("a", "key")]);
    await clock.advance(2_000);
    const [again] = await queue.append([message("a", "key")]);
    expect([known?.isDuplicate, again?.isDuplicate]).toEqual([true, false]);
    await queue.close();
  });

  test("keys of many messages are known, also by the next process, until their time is over", async () => {
    const clock = new ManualClock();
    const directory = fresh();
    const begun = await openSqliteQueue({ directory, limits, clock });
    const count = 5_000;
    const of = (from: number) =>
      Array.from({ length: 1_000 }, (_, at) => message("a", String(from + at)));
    for (let from = 0; from < count; from += 1_000) {
      await begun.append(of(from));
      await clock.advance(1_000);
    }
    await begun.close();
    const queue = await openSqliteQueue({ directory, limits, clock });
    const again = async () => {
      let isKnown = 0;
      for (let from = 0; from < count; from += 1_000)
        isKnown += (await queue.append(of(from))).filter((each) => each.isDuplicate).length;
      return isKnown;
    };
    expect(await again()).toBe(count);
    // Of the first two thousands by now.
    await clock.advance(6_500);
    expect(await again()).toBe(3_000);
    await queue.close();
  });

  test("looking for it takes as long in a log of many young messages as in one of few", async () => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), clock });
    const take = async () => {
      const begin = performance.now();
      for (let pass = 0; pass < 100; pass++) await clock.advance(10_000);
      return performance.now() - begin;
    };
    await queue.append([message("a", "first")]);
    await take();
    const few = await take();
    const body = new Uint8Array(2_000);
    for (let from = 0; from < 10_000; from += 1_000)
      await queue.append(
        Array.from({ length: 1_000 }, (_, at) => message("a", `${from + at}`, { body })),
      );
    expect(await take()).toBeLessThan(100 + 5 * few);
    await queue.close();
  });
});

describe("a clock that is set", () => {
  const hourMs = 3_600_000;

  test.each([-hourMs, hourMs])("by %i ms delays nothing that waits", async (byMs) => {
    const clock = new ManualClock();
    const queue = await openSqliteQueue({ directory: fresh(), clock });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const busy = await queue.consumer("busy", { subjects: ["b"] });
    const notBefore = clock.now() + 10_000;
    await queue.append([message("a", "retried"), message("a", "later", { notBefore })]);
    // Not looked at by its consumer until the clock has been set.
    await queue.append([message("b", "unseen", { notBefore })]);
    const [first] = await take(consumer, 1);
    first?.retry(10_000);
    const seen: string[] = [];
    const stop = new AbortController();
    const taking = (async () => {
      while (!stop.signal.aborted)
        for (const delivery of await consumer.next(5, stop.signal)) {
          seen.push(delivery.message.key);
          delivery.ack();
        }
    })();
    await queue.head();
    await clock.advance(5_000);
    expect(seen).toEqual([]);
    clock.set(byMs);
    await clock.advance(6_000);
    await queue.head();
    expect(seen.toSorted()).toEqual(["later", "retried"]);
    expect((await take(busy, 1)).map(({ message: { key } }) => key)).toEqual(["unseen"]);
    stop.abort();
    await taking;
    await queue.close();
  });

  test("back while nothing ran delays nothing either", async () => {
    const directory = fresh();
    const clock = new ManualClock();
    const before = await openSqliteQueue({ directory, clock });
    const first = await before.consumer("c", { subjects: ["a"] });
    await before.append([message("a", "1")]);
    for (const delivery of await take(first, 1)) delivery.retry(10_000);
    await before.close();
    clock.set(-hourMs);
    const queue = await openSqliteQueue({ directory, clock });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    const got = take(consumer, 1);
    await queue.head();
    await clock.advance(11_000);
    expect((await got).map(({ message: { key } }) => key)).toEqual(["1"]);
    await queue.close();
  });
});

describe("a queue that is full", () => {
  const body = Buffer.alloc(64 * 1024);

  test("refuses, and takes again once something has been delivered", async () => {
    const clock = new ManualClock();
    const limits = { maxBytes: 1024 ** 2 };
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    let accepted = 0;
    const fill = async () => {
      for (;;) await queue.append([message("a", String(accepted++), { body })]);
    };
    await expect(fill()).rejects.toThrow(QueueFullError);
    await expect(fill()).rejects.toThrow("it has reached its limit of 1048576 bytes");
    await queue.put({ bucket: "b", key: "x", value: "records are small, and are still taken" });
    for (const delivery of await take(consumer, 10)) delivery.ack();
    await queue.head();
    await clock.advance(10_000);
    expect(await queue.append([message("a", "more", { body })])).toHaveLength(1);
    await queue.close();
  });

  test("leaves half of its time to others, however often it refuses", async () => {
    const passes: { begin: number; end: number }[] = [];
    const timed: Clock = {
      ...systemClock,
      after: (ms, callback) =>
        systemClock.after(ms, () => {
          const begin = performance.now();
          callback();
          passes.push({ begin, end: performance.now() });
        }),
    };
    const limits = { maxBytes: 12 * 1024 ** 2 };
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock: timed });
    const owners = ["x", "y"].map((owner) =>
      queue.consumer(`${owner}/1`, { subjects: [owner], owner }),
    );
    await Promise.all(owners);
    const small = Buffer.alloc(16);
    const batch = (round: number) =>
      Array.from({ length: 1_000 }, (_, at) => message("x", `${round}/${at}`, { body: small }));
    const fill = async () => {
      for (let round = 0; ; round++) await queue.append(batch(round));
    };
    await expect(fill()).rejects.toThrow(QueueFullError);
    passes.length = 0;
    // Not for a time: on a busy machine there are few passes in a second, and each takes long.
    const publisher = async (own: number) => {
      for (let round = 0; passes.length < 5; round++)
        await queue.append([message("x", `${own}/${round}`, { body: small })]).catch(() => {});
    };
    await Promise.all(Array.from({ length: 16 }, (_, own) => publisher(own)));
    await queue.close();
    const tooEarly = passes.filter(({ begin }, at) => {
      const before = passes[at - 1];
      // A second is the longest rest.
      return before && begin - before.end < 0.9 * Math.min(before.end - before.begin, 1_000);
    });
    expect(tooEarly).toEqual([]);
  });
});

describe("owners share", () => {
  const mebibyte = 1024 ** 2;
  const body = Buffer.alloc(64 * 1024);
  const many = (subject: string, count: number, prefix = "") =>
    Array.from({ length: count }, (_, at) =>
      message(subject, `${prefix}${subject}${at}`, { body }),
    );

  /** What has been handled is removed as soon as there is no room: a publisher who retries at once gets in. */
  const untilThereIsRoom = async (append: () => Promise<unknown>) => {
    const deadline = performance.now() + 2_000;
    for (let isIn = false; !isIn;) {
      isIn = await append().then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof QueueFullError) || performance.now() > deadline) throw error;
          return false;
        },
      );
    }
  };

  test("dead letters: who has the most loses the oldest, and no other events are refused for them", async () => {
    const limits = { maxBytes: 4 * mebibyte, maxDeadBytes: 2 * mebibyte };
    const queue = await open(limits);
    const [greedy, other, small] = await Promise.all([
      queue.consumer("x/1", { subjects: ["a"], owner: "x" }),
      queue.consumer("x/2", { subjects: ["b"], owner: "x" }),
      queue.consumer("y/1", { subjects: ["c"], owner: "y" }),
    ]);
    const bury = async (consumer: Consumer, subject: string, count: number, prefix = "") => {
      const all = many(subject, count, prefix);
      await untilThereIsRoom(() => queue.append(all));
      for (const delivery of await take(consumer, count))
        delivery.bury({ reason: "Refused", message: "no" });
    };
    await bury(small, "c", 3);
    await bury(other, "b", 6);
    for (let round = 0; round < 12; round++) await bury(greedy, "a", 10, `${round}/`);
    expect(await small.state()).toMatchObject({ dead: 3, dropped: 0 });
    const states = [await greedy.state(), await other.state()];
    const dead = states.reduce((sum, state) => sum + state.dead, 0);
    expect(dead).toBeGreaterThan(15);
    expect(dead).toBeLessThanOrEqual(29);
    expect(states[0]?.dropped).toBeGreaterThan(90);
    const [oldest] = await greedy.deadLetters({ limit: 1 });
    expect(oldest?.event.key.startsWith("0/")).toBe(false);
    await greedy.discard("all");
    await bury(greedy, "a", 4, "again/");
    expect((await greedy.state()).dead).toBe(4);
    await queue.close();
  });

  test("space: publishers who retry at once do not hold up the cleaning that makes room for them", async () => {
    const queue = await open({ maxBytes: 2 * mebibyte });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    await queue.append(many("a", 40));
    for (const delivery of await take(consumer, 40)) delivery.ack();
    await Promise.all(
      many("a", 16, "last/").map((each) => untilThereIsRoom(() => queue.append([each]))),
    );
    await queue.close();
  });

  test("space: when it is tight, the largest backlog becomes dead letters, and the other's events go on", async () => {
    const clock = new ManualClock();
    const limits = { maxBytes: 4 * mebibyte };
    const queue = await openSqliteQueue({ directory: fresh(), limits, clock });
    const slow = await queue.consumer("x/1", { subjects: ["a"], owner: "x" });
    const quick = await queue.consumer("y/1", { subjects: ["c"], owner: "y" });
    await queue.append(many("c", 4));
    const fill = async () => {
      for (let at = 0; ; at++) await queue.append(many("a", 1, `${at}/`));
    };
    await expect(fill()).rejects.toThrow(QueueFullError);
    await clock.advance(10_000);
    await queue.append(many("c", 1, "more"));
    const state = await slow.state();
    expect(state.dead).toBeGreaterThan(5);
    expect(state.waiting).toBeGreaterThan(20);
    const [letter] = await slow.deadLetters({ limit: 1 });
    expect(letter).toMatchObject({ reason: "QueueFull", event: { key: "0/a0" } });
    expect(await quick.state()).toMatchObject({ dead: 0, waiting: 5 });
    await queue.close();
  });

  test("what is handed out: an owner gets half of it, until something comes back", async () => {
    const queue = await open({ maxLeasedBytes: mebibyte });
    const consumers = await Promise.all(
      ["1", "2", "3"].map((name) => queue.consumer(`x/${name}`, { subjects: ["a"], owner: "x" })),
    );
    const other = await queue.consumer("y/1", { subjects: ["a"], owner: "y" });
    await queue.append(many("a", 20));
    const stop = new AbortController();
    const taken: Delivery[] = [];
    const taking = consumers.map(async (consumer) => {
      while (!stop.signal.aborted) taken.push(...(await consumer.next(20, stop.signal)));
    });
    const own = await take(other, 3);
    expect(own).toHaveLength(3);
    await queue.head();
    const before = taken.length;
    expect(before).toBeGreaterThan(3);
    expect(before).toBeLessThanOrEqual(10);
    while (taken.length < 60) {
      for (const delivery of taken.slice(0)) delivery.ack();
      await queue.head();
    }
    expect(taken).toHaveLength(60);
    stop.abort();
    await Promise.all(taking);
    await queue.close();
  });
});

describe("a queue's file", () => {
  test("that is another process's is not opened", async () => {
    const directory = fresh();
    const queue = await open({}, directory);
    const second = openSqliteQueue({ directory });
    await expect(second).rejects.toThrow(QueueUnavailableError);
    await expect(second).rejects.toThrow(/queue\.db cannot be used: database is locked/);
    await queue.close();
  });

  test("that is no database, or was cut short, is reported and left as it is", async () => {
    const garbage = fresh();
    writeFileSync(path.join(garbage, "queue.db"), "x".repeat(10_000));
    await expect(openSqliteQueue({ directory: garbage })).rejects.toThrow(QueueUnavailableError);
    expect(readFileSync(path.join(garbage, "queue.db"), "utf8")).toBe("x".repeat(10_000));

    const cut = fresh();
    const queue = await open({}, cut);
    await queue.append(
      Array.from({ length: 500 }, (_, at) =>
        message("a", String(at), { body: Buffer.alloc(1_000) }),
      ),
    );
    await queue.close();
    const file = path.join(cut, "queue.db");
    truncateSync(file, Math.floor(statSync(file).size / 2));
    await expect(openSqliteQueue({ directory: cut })).rejects.toThrow(QueueUnavailableError);
  });

  test("is opened again when its thread has ended", async () => {
    const directory = fresh();
    // The thread's program, and a way to end it from here.
    const workerFile = path.join(directory, "worker.ts");
    const program = path.join(import.meta.dirname, "sqlite/worker.ts");
    writeFileSync(
      workerFile,
      `import { parentPort } from "node:worker_threads";
       import ${JSON.stringify(program)};
       parentPort.on("message", (requests) => requests.some(({ name }) => name === "end") && process.exit(1));`,
    );
    const queue = await openSqliteQueue({ directory, workerFile });
    const consumer = await queue.consumer("c", { subjects: ["a"] });
    await queue.append([message("a", "1"), message("a", "2")]);
    const [first] = await take(consumer, 1);
    await expect(queue.find("end")).rejects.toThrow(QueueUnavailableError);
    await expect(queue.head()).rejects.toThrow(QueueUnavailableError);
    first?.ack();
    await expect.poll(() => queue.head().catch(() => 0), { timeout: 20_000 }).toBe(2);
    const again = await take(consumer, 2);
    expect(again.map((each) => [each.message.key, each.attempt])).toEqual([
      ["1", 2],
      ["2", 1],
    ]);
    await queue.append([message("a", "3")]);
    expect(await take(consumer, 1)).toHaveLength(1);
    await queue.close();
  });

  test("of the first format is brought to the present one, with what it knows", async () => {
    const directory = fresh();
    const first = await open({}, directory);
    await first.append([message("a", "1")]);
    await first.close();
    const database = new DatabaseSync(path.join(directory, "queue.db"));
    database.exec(
      "ALTER TABLE pending DROP COLUMN failures; DROP INDEX messages_by_time; CREATE INDEX messages_by_key ON messages (key_hash); PRAGMA user_version = 1;",
    );
    database.close();
    const queue = await open({}, directory);
    const appended = await queue.append([message("a", "1"), message("a", "2")]);
    expect(appended.map(({ isDuplicate }) => isDuplicate)).toEqual([true, false]);
    await queue.close();
  });

  test("is for its owner alone", async () => {
    const directory = path.join(fresh(), "new");
    const queue = await open({}, directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    await queue.close();
  });
});
