import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources, silentLogger, systemClock } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { expect, test } from "vitest";
import { callbackConsumer, callbackSubject } from "./call.ts";
import { NamespaceClaims } from "./namespace-claims.ts";
import { CallRunner } from "./runner.ts";

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
    // Kept before namespaces were told apart.
    result("unknown", undefined),
  ]);

  const stop = new AbortController();
  const sent: string[] = [];
  const runner = new CallRunner({
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
