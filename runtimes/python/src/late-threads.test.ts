/** Clause 6.2: what a call still does after its 408 holds neither processor time nor a place for long. */
import { limitMemory, noMemoryLimits } from "@spry/test-kit";
import { expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const ways = {
  "def, in its own thread": `
import os, time
def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/late": work(); return "late"
    if path == "/other": time.sleep(1); return "other"
    return str(os.getpid())
def work():
    while True:
        time.sleep(0.05)
        print("goes on")
`,
  "async def, in asyncio.to_thread": `
import asyncio, os, time
async def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/late": await asyncio.to_thread(work); return "late"
    if path == "/other": await asyncio.sleep(1); return "other"
    return str(os.getpid())
def work():
    while True:
        time.sleep(0.05)
        print("goes on")
`,
  "async def, which does not let itself be cancelled": `
import asyncio, os
async def main(event, context):
    path = event["extensions"]["request"].path
    while path == "/late":
        try: await asyncio.sleep(0.05); print("goes on")
        except asyncio.CancelledError: pass
    if path == "/other": await asyncio.sleep(1); return "other"
    return str(os.getpid())
`,
};

test.skipIf(missingPython).each(Object.entries(ways))(
  "%s: the process is replaced, after its other requests have been answered",
  async (_, source) => {
    await using runtime = await PythonRuntime.start(source, { FUNC_TIMEOUT: "2" });
    const { body: former } = await runtime.call();
    const late = runtime.call("/late");
    await expect.poll(() => runtime.output).toContain("goes on");
    // It is in progress when the other's time is over.
    await new Promise((done) => setTimeout(done, 1_300));
    const other = runtime.call("/other");
    expect((await late).status).toBe(408);
    expect(await other).toMatchObject({ status: 200, body: "other" });
    await expect.poll(async () => (await runtime.call()).body).not.toBe(former);
    await expect.poll(() => isAlive(Number(former)), { timeout: 10_000 }).toBe(false);
  },
);

test.skipIf(missingPython)(
  "a call that ends when it is cancelled leaves its process as it is",
  async () => {
    await using runtime = await PythonRuntime.start(
      `
import asyncio, os
async def main(event, context):
    if event["extensions"]["request"].path == "/late": await asyncio.sleep(60)
    return str(os.getpid())`,
      { FUNC_TIMEOUT: "1" },
    );
    const { body: process } = await runtime.call();
    expect((await runtime.call("/late")).status).toBe(408);
    await new Promise((done) => setTimeout(done, 1_000));
    expect((await runtime.call()).body).toBe(process);
  },
);

test.skipIf(missingPython ?? noMemoryLimits).each(Object.entries(ways).slice(0, 2))(
  "%s: without memory for two processes, the other starts when the first has ended",
  async (_, source) => {
    await using group = limitMemory(128);
    await using runtime = await PythonRuntime.start(
      `kept = b"x" * 70_000_000\n${source}`,
      { FUNC_TIMEOUT: "2" },
      group.prefix,
    );
    const { body: former } = await runtime.call();
    expect((await runtime.call("/late")).status).toBe(408);
    await expect
      .poll(async () => await runtime.call().catch(() => undefined), { timeout: 15_000 })
      .toMatchObject({ status: 200, body: expect.not.stringMatching(`^${former}$`) as string });
    expect(group.kills()).toBe(0);
  },
);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
