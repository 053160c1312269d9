import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources, silentLogger, systemClock } from "@spry/kube";
import { openSqliteQueue, type Queue } from "@spry/queue";
import { expect, test } from "vitest";
import { administerCalls } from "./administration.ts";
import { type Call, callbackConsumer, callbackSubject, callBucket } from "./call.ts";
import { NamespaceClaims } from "./namespace-claims.ts";
import { CallRunner } from "./runner.ts";
import { CallSubmitter } from "./submit.ts";

/** The queue, with something that happens just before a write of this kind. */
function before(queue: Queue, isDue: (operation: string) => boolean, act: () => Promise<void>) {
  return new Proxy(queue, {
    get(target, name: keyof Queue) {
      const method = target[name].bind(target) as (...parts: unknown[]) => Promise<unknown>;
      return async (...parts: unknown[]) => {
        if (isDue(name)) await act();
        return method(...parts);
      };
    },
  });
}

test.each(["put", "append"])(
  "of a call's end and its cancellation by another process, the first counts: cancelled before the %s of the process that makes it",
  async (operation) => {
    const api = await createApiServer({ dataDir: ":memory:" });
    const client = new KubeClient(api.transport());
    await client.create(resources.namespaces, { metadata: { name: "shop" } });
    const queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "cancel-")) });
    const callbacks = await queue.consumer(callbackConsumer, {
      subjects: [callbackSubject],
      from: "start",
    });
    const clock = systemClock;
    const submitter = new CallSubmitter(clock);
    const other = administerCalls({ client, submitter, runner: () => undefined, clock });
    const stop = new AbortController();
    let id = "";
    let made = 0;
    const answers: boolean[] = [];
    const racing = before(
      queue,
      (name) => name === operation && id !== "" && answers.length === 0,
      async () => void answers.push(await other.cancel(queue, "shop", id)),
    );
    const runner = new CallRunner({
      client,
      queue: racing,
      deliver: async () => {
        made++;
        return { status: 200, headers: {}, body: Buffer.from("done"), isCut: false };
      },
      claims: new NamespaceClaims(client, clock),
      allowPrivate: false,
      clock,
      log: silentLogger,
      signal: stop.signal,
    });
    await runner.ensure("shop/fn");
    const options = { retries: 3, retentionMs: 60_000, callbackUrl: "http://a.shop.svc/" };
    const call = { namespace: "shop", name: "fn", method: "POST", path: "/", headers: [] };
    id = await submitter.submit(queue, { ...call, body: Buffer.alloc(0), options });
    const consumer = await queue.find("calls/shop/fn");
    await expect.poll(async () => (await consumer?.state())?.waiting).toBe(0);
    const kept = JSON.parse((await queue.get(callBucket("shop"), id)) ?? "{}") as Call;
    expect([answers, kept.state]).toEqual([[true], "cancelled"]);
    expect(made).toBe(operation === "put" ? 0 : 1);
    expect((await callbacks.state()).waiting).toBe(0);
    expect(await other.cancel(queue, "shop", id)).toBe(false);
    stop.abort();
    await queue.close();
    await api.close();
  },
);

test("of a call's end and its cancellation by another process, the first counts: ended before it is cancelled", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  const queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "cancel-")) });
  const clock = systemClock;
  const submitter = new CallSubmitter(clock);
  const call = { namespace: "shop", name: "fn", method: "POST", path: "/", headers: [] };
  const options = { retries: 0, retentionMs: 60_000 };
  const id = await submitter.submit(queue, { ...call, body: Buffer.alloc(0), options });
  const bucket = callBucket("shop");
  const known = JSON.parse((await queue.get(bucket, id)) ?? "{}") as Call;
  const succeeded = JSON.stringify({ ...known, state: "succeeded" });
  let ended = false;
  const racing = before(
    queue,
    (name) => name === "put" && !ended,
    async () => {
      ended = true;
      await queue.put({ bucket, key: id, value: succeeded });
    },
  );
  const other = administerCalls({ client, submitter, runner: () => undefined, clock });
  expect(await other.cancel(racing, "shop", id)).toBe(false);
  expect(await queue.get(bucket, id)).toBe(succeeded);
  await queue.close();
  await api.close();
});
