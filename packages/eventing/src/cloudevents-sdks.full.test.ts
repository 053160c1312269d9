/** Other people's SDKs of CloudEvents publish to ours, and read what ours sends to sinks. They come from their registries. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { silentLogger } from "@spry/kube";
import { openSqliteQueue, type Queue } from "@spry/queue";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloudEventsProgram } from "../../../tools/cloudevents-go/binary.ts";
import { binaryHeaders } from "./events/http.ts";
import { eventOf } from "./events/message.ts";
import { EventingMetrics } from "./metrics.ts";
import { createPublisher } from "./publisher/publisher.ts";

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(tmpdir(), "sdks-"));
const hasPython = spawnSync("python3", ["-m", "venv", "--help"]).status === 0;

let queue: Queue;
let url = "";
let server: ReturnType<typeof createPublisher>;
let position = 0;

beforeAll(async () => {
  queue = await openSqliteQueue({ directory: path.join(scratch, "queue") });
  server = createPublisher({
    queue: () => queue,
    metrics: new EventingMetrics(),
    log: silentLogger,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/publish`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await queue.close();
});

/** What a sink gets of the events that were published since the last time. */
async function delivered() {
  const messages = await queue.read({ after: position, limit: 100 });
  position = messages.at(-1)?.position ?? position;
  return messages.map((message) => {
    const list = binaryHeaders(eventOf(message));
    const headers: Record<string, string> = {};
    for (let at = 0; at < list.length; at += 2) headers[list[at] ?? ""] = list[at + 1] ?? "";
    return { headers, body: Buffer.from(message.body).toString("utf8") };
  });
}

interface Sdk {
  CloudEvent: new (event: object) => { id: string; data?: unknown; extension?: string };
  HTTP: {
    binary(event: object): { headers: Record<string, string>; body: unknown };
    structured(event: object): { headers: Record<string, string>; body: unknown };
    toEvent(message: object): { id: string; data?: unknown; extension?: string };
  };
}

describe("the SDK of JavaScript", () => {
  test("publishes in binary and structured mode, and reads what a sink gets", async () => {
    await run("npm", ["install", "--silent", "--prefix", scratch, "cloudevents@10"]);
    const sdk = createRequire(path.join(scratch, "x.js"))("cloudevents") as Sdk;
    for (const mode of ["binary", "structured"] as const) {
      const event = new sdk.CloudEvent({
        id: `js-${mode}`,
        source: "shop",
        type: "order.created.v1",
        extension: "ü 1",
        data: { amount: 3, text: "ä" },
      });
      const { headers, body } = sdk.HTTP[mode](event);
      const sent = await fetch(url, { method: "POST", headers, body: String(body) });
      expect([sent.status, await sent.text()]).toEqual([204, ""]);
      const [got] = await delivered();
      const read = sdk.HTTP.toEvent(got ?? {});
      expect([read.id, read.data]).toEqual([`js-${mode}`, { amount: 3, text: "ä" }]);
    }
  }, 300_000);
});

const python = `
import json, sys, urllib.request
from cloudevents.http import CloudEvent, from_http
from cloudevents.conversion import to_binary, to_structured
url = sys.argv[1]
if url == "read":
    message = json.loads(sys.argv[2])
    event = from_http(message["headers"], message["body"])
    print(json.dumps([event["id"], event.data]))
else:
    for name, convert in (("binary", to_binary), ("structured", to_structured)):
        event = CloudEvent({"id": "py-" + name, "source": "shop", "type": "order.created.v1"}, {"amount": 3})
        headers, body = convert(event)
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")
        print(urllib.request.urlopen(request).status)
`;

describe.skipIf(!hasPython)("the SDK of Python", () => {
  test("publishes in binary and structured mode, and reads what a sink gets", async () => {
    const venv = path.join(scratch, "venv");
    await run("python3", ["-m", "venv", venv]);
    const program = path.join(venv, "bin/python");
    await run(program, ["-m", "pip", "install", "--quiet", "cloudevents==1.12.0"]);
    const { stdout } = await run(program, ["-c", python, url]);
    expect(stdout.split("\n").filter(Boolean)).toEqual(["204", "204"]);
    for (const [at, message] of (await delivered()).entries()) {
      const read = await run(program, ["-c", python, "read", JSON.stringify(message)]);
      const mode = at === 0 ? "binary" : "structured";
      expect(JSON.parse(read.stdout)).toEqual([`py-${mode}`, { amount: 3 }]);
    }
  }, 300_000);
});

const program = cloudEventsProgram();
const whyNoGo = existsSync(program)
  ? undefined
  : "not built: `npm run foreign-tools` does that, with Go";

describe.skipIf(whyNoGo)(`the SDK of Go${whyNoGo ? ` (skipped: ${whyNoGo})` : ""}`, () => {
  test("publishes in binary and structured mode, and receives what a sink gets", async () => {
    const { stdout } = await run(program, ["publish", url]);
    expect(stdout.split("\n").filter(Boolean)).toEqual(["204", "204"]);
    const receiver = spawn(program, ["receive"], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]();
      const address = String((await lines.next()).value);
      const received: unknown[] = [];
      for (const { headers, body } of await delivered()) {
        const { ok } = await fetch(address, { method: "POST", headers, body });
        expect(ok).toBe(true);
        received.push(JSON.parse(String((await lines.next()).value)));
      }
      const event = (id: string) => ({
        specversion: "1.0",
        id,
        source: "shop",
        type: "order.created.v1",
        comment: "gift",
        time: "2026-01-01T00:00:00Z",
        datacontenttype: "application/json",
        data: { amount: 3, text: "ä" },
      });
      expect(received).toEqual([event("go-binary"), event("go-structured")]);
    } finally {
      receiver.kill();
    }
  }, 60_000);
});
