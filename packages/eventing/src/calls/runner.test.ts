import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, ManualClock, resources, silentLogger, systemClock } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { expect, test } from "vitest";
import { callbackConsumer, callbackSubject, consumerOfCalls } from "./call.ts";
import { NamespaceClaims } from "./namespace-claims.ts";
import { CallRunner } from "./runner.ts";
import { CallSubmitter } from "./submit.ts";

test("a result is not sent into a namespace that was made again under the name of its own", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  const queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "runner-")) });
  await client.create(resources.namespaces, { metadata: { name: "shop" } });
  const { metadata } = await client.get(resources.namespaces, { name: "shop" });
  await queue.consumer(callbackConsumer, { subjects: [callbackSubject], from: "start" });
  const result = (name: string, uid: string | undefined) => ({
    subject: callbackSubject,
    key: name,
    attributes: {
      url: `http://${name}.shop.svc.cluster.local/`,
      namespace: "shop",
      headers: "{}",
      ...(uid === undefined ? {} : { uid }),
    },
    body: Buffer.alloc(0),
  });
  await queue.append([
    result("former", "of-the-former-one"),
    result("present", metadata.uid),
    // Kept before namespaces were distinguished.
    result("unknown", undefined),
  ]);

  const stop = new AbortController();
  const sent: string[] = [];
  const runner = new CallRunner({
    client,
    queue,
    deliver: async ({ name }) => {
      sent.push(name);
      return { status: 200, headers: {}, body: Buffer.alloc(0), isCut: false };
    },
    claims: new NamespaceClaims(client, systemClock),
    allowPrivate: false,
    clock: systemClock,
    log: silentLogger,
    signal: stop.signal,
  });
  const running = runner.run();
  const consumer = await queue.find(callbackConsumer);
  await expect.poll(async () => (await consumer?.state())?.waiting).toBe(0);
  expect(sent.toSorted()).toEqual(["present", "unknown"]);
  stop.abort();
  await running;
  await queue.close();
  await api.close();
});

test("a Function without calls for ten minutes costs nothing, and the next call is made", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  const clock = new ManualClock();
  const directory = mkdtempSync(path.join(tmpdir(), "runner-"));
  const queue = await openSqliteQueue({ directory, clock });
  const stop = new AbortController();
  let sent = 0;
  let answer = () => {};
  const runner = new CallRunner({
    client,
    queue,
    deliver: async () => {
      sent++;
      await new Promise<void>((resolve) => (answer = resolve));
      return { status: 200, headers: {}, body: Buffer.alloc(0), isCut: false };
    },
    claims: new NamespaceClaims(client, clock),
    allowPrivate: false,
    clock,
    log: silentLogger,
    signal: stop.signal,
  });
  const running = runner.run();
  const submitter = new CallSubmitter(clock);
  const options = { retries: 0, retentionMs: 3_600_000 };
  const call = { namespace: "default", name: "fn", method: "POST", path: "/", headers: [] };
  const submit = async () => {
    await runner.ensure("default/fn");
    await submitter.submit(queue, { ...call, body: Buffer.alloc(0), options });
  };
  const waiting = async () =>
    (await (await queue.consumer(...consumerOfCalls("default/fn"))).state()).waiting;
  /** Each turn of the sweep is one of the clock's. */
  const later = async (minutes: number) => {
    for (let i = 0; i < minutes; i++) {
      await clock.advance(60_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  for (let round = 1; round <= 2; round++) {
    await submit();
    await expect.poll(() => sent).toBe(round);
    // One that is under way keeps it.
    await later(15);
    expect(runner.size).toBe(1);
    answer();
    await expect.poll(waiting).toBe(0);
    await expect
      .poll(async () => {
        await later(1);
        return runner.size;
      })
      .toBe(0);
  }
  stop.abort();
  await running;
  await queue.close();
  await api.close();
});
