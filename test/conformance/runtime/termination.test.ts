/** Clause 10.1 of docs/runtime-contract.md: an instance that is asked to end loses no request. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, test } from "vitest";
import { type Language } from "./clauses.ts";
import { availableRuntimes, startRuntime } from "./runtimes.ts";

/** `/slow` is answered when the file RELEASE is there. */
const handlers: Record<Language, [name: string, code: string][]> = {
  nodejs: [
    [
      "fetch",
      `const { existsSync } = require("node:fs");
      const pause = () => new Promise((done) => setTimeout(done, 20));
      exports.default = { async fetch(request) {
        while (request.url.endsWith("/slow") && !existsSync(process.env.RELEASE)) await pause();
        return new Response("done");
      } };`,
    ],
  ],
  python: [
    [
      "def main",
      `
import os, time
def main(event, context):
    while event["extensions"]["request"].path == "/slow" and not os.path.exists(os.environ["RELEASE"]):
        time.sleep(0.02)
    return "done"`,
    ],
    [
      "async def main",
      `
import asyncio, os
async def main(event, context):
    while event["extensions"]["request"].path == "/slow" and not os.path.exists(os.environ["RELEASE"]):
        await asyncio.sleep(0.02)
    return "done"`,
    ],
  ],
};

const engines = [
  { engine: "a cluster", env: { SPRY_READY_FD: "" }, delayMs: 5000 },
  { engine: "the embedded engine", env: {}, delayMs: 2000 },
];
const rows = (await availableRuntimes()).flatMap((runtime) =>
  handlers[runtime.language].flatMap(([name, code]) =>
    engines.map((engine) => ({ runtime, name, code, ...engine })),
  ),
);

describe.concurrent("10.1 told to end", () => {
  test.for(rows)(
    "on $engine $runtime.name, $name, answers new connections for $delayMs ms, then refuses them and finishes what it has",
    async ({ runtime, code, env, delayMs }, { expect, onTestFinished }) => {
      const directory = mkdtempSync(path.join(tmpdir(), "spry-termination-"));
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
      const release = path.join(directory, "release");
      const running = await startRuntime(runtime, code, { ...env, RELEASE: release });
      onTestFinished(() => running.stop());
      const slow = ask(`${running.url}/slow`);
      await expect
        .poll(async () => (await ask(`${running.url}/metrics`, scrape)).body)
        .toMatch(/^function_in_flight_requests.* 1(\.0)?$/m);

      const toldAt = performance.now();
      const exited = running.terminate();
      const last = await askUntilRefused(running.url);
      expect(performance.now() - toldAt).toBeGreaterThan(delayMs - 50);
      expect(last).toMatchObject({ status: 200, body: "done", connection: "close" });

      writeFileSync(release, "");
      expect(await slow).toMatchObject({ status: 200, body: "done" });
      expect(await exited).toBe(0);
    },
  );
});

/** Each time on a new connection; the last answer. One that connects in the moment of closing is reset by the system. */
async function askUntilRefused(url: string) {
  for (let last: Awaited<ReturnType<typeof ask>> | undefined; ; await pause(50))
    try {
      last = await ask(url);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ECONNREFUSED") return last;
      if (code !== "ECONNRESET") throw error;
    }
}

/** As Prometheus asks: a fetch handler has its own /metrics for others. */
const scrape = { "x-prometheus-scrape-timeout-seconds": "10" };

async function ask(url: string, more: Record<string, string> = {}) {
  const headers = { connection: "keep-alive", ...more };
  const outgoing = request(url, { agent: false, headers }).end();
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of answer as AsyncIterable<Buffer>) body += chunk.toString();
  const { connection } = answer.headers;
  // The server would keep it: no request comes on it again.
  outgoing.destroy();
  return { status: answer.statusCode, connection, body };
}
