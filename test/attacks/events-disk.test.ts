/** The disk of the queue of events: full, and with a file that was cut short. Events are refused and the rest is served; nothing that was accepted is lost. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const reason =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? "mounting a file system needs root on Linux"
    : undefined;
const directory = mkdtempSync(path.join(tmpdir(), "events-disk-"));
const platform = new Platform({ dataDir: path.join(directory, "data") });
const queue = path.join(platform.dataDir, "events");
const filler = path.join(queue, "filler");
const patienceMs = 60_000;

async function publish(id: string, bytes = 0): Promise<{ status: number; text: string }> {
  const event = { specversion: "1.0", id, source: "shop", type: "order.created.v1" };
  const response = await fetch(`${platform.endpoints.publisher}/publish`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({ ...event, data: "x".repeat(bytes) }),
  });
  return { status: response.status, text: await response.text() };
}

/** The ids of all that is in the queue. */
async function kept(): Promise<string[]> {
  const { code, stdout, stderr } = await platform.spry(["events", "tail", "--once"]);
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.split("\n").filter(Boolean);
  return lines.map((line) => (JSON.parse(line) as { event: { id: string } }).event.id);
}

describe.skipIf(reason !== undefined)(
  `the queue's disk${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    beforeAll(async () => {
      await platform.start();
      await platform.stop();
      rmSync(queue, { recursive: true });
      mkdirSync(queue, { mode: 0o700 });
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", queue]);
      await platform.start();
    }, 60_000);
    afterAll(async () => {
      await platform.stop();
      spawnSync("umount", ["-l", queue]);
      rmSync(directory, { recursive: true, force: true });
    });

    test("that is full: events are refused with 507 until there is room, and what was accepted is kept", async () => {
      const accepted: string[] = [];
      expect((await publish("first")).status).toBe(204);
      accepted.push("first");
      spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4096"]);
      const refused = async () => {
        const id = `large-${accepted.length}`;
        const { status, text } = await publish(id, 500_000);
        if (status === 204) accepted.push(id);
        else expect({ status, text }).toEqual({ status: 507, text: expect.stringMatching(/full/) });
        return status === 507;
      };
      await untilTrue("an event is refused", refused, patienceMs);
      rmSync(filler);
      await untilTrue(
        "events are accepted again",
        async () => (await publish("after")).status === 204,
        patienceMs,
      );
      expect(await kept()).toEqual([...accepted, "after"]);
    }, 120_000);

    test("whose file was cut short: it is reported and left as it is, the rest is served, and another file takes its place", async () => {
      await platform.stop();
      const file = path.join(queue, "queue.db");
      truncateSync(file, Math.floor(statSync(file).size / 2));
      const size = statSync(file).size;
      await platform.start();
      await platform.k("create configmap served --from-literal=a=b");
      expect(await publish("none")).toEqual({
        status: 503,
        text: "events cannot be accepted at present: retry later\n",
      });
      await untilTrue(
        "the log says so",
        async () =>
          readFileSync(path.join(platform.dataDir, "logs", "gateway.log"), "utf8").includes(
            "queue.db cannot be used",
          ),
        patienceMs,
      );
      expect(statSync(file).size).toBe(size);
      // As a person would who gives it up.
      for (const name of readdirSync(queue)) rmSync(path.join(queue, name));
      await untilTrue(
        "events are accepted again",
        async () => (await publish("new")).status === 204,
        patienceMs,
      );
    }, 120_000);
  },
);
