import { appendFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { systemClock } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { LogFile } from "./log-file.ts";
import { type LogOptions, parseLogOptions, readLog } from "./log-reader.ts";

function logOf(text: string): LogFile {
  const file = path.join(temporaryDirectory(), "0.log");
  writeFileSync(file, text);
  return new LogFile(file, systemClock);
}
const none: LogOptions = { follow: false, previous: false, timestamps: false };

async function textOf(log: LogFile, options: Partial<LogOptions>, isRunning = () => false) {
  const signal = new AbortController().signal;
  const chunks: Uint8Array[] = [];
  for await (const chunk of readLog(log, { ...none, ...options }, isRunning, systemClock, signal))
    chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("logs", () => {
  test.each([
    { name: "all of it", options: {}, text: "one\ntwo\nthree\n" },
    { name: "the last line", options: { tailLines: 1 }, text: "three\n" },
    { name: "more lines than there are", options: { tailLines: 9 }, text: "one\ntwo\nthree\n" },
    { name: "no line", options: { tailLines: 0 }, text: "" },
    { name: "the first bytes", options: { limitBytes: 5 }, text: "one\nt" },
    { name: "nothing from later than now", options: { since: Date.now() + 60_000 }, text: "" },
  ])("give $name", async ({ options, text }) => {
    expect(await textOf(logOf("one\ntwo\nthree\n"), options)).toBe(text);
  });

  test("find the last lines across large pieces", async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`);
    expect(await textOf(logOf(lines.join("")), { tailLines: 12_345 })).toBe(
      lines.slice(-12_345).join(""),
    );
  });

  test("put a time before each line", async () => {
    const text = await textOf(logOf("one\ntwo"), { timestamps: true });
    expect(text).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z one\n\d{4}-\d\d-\d\dT[\d:.]+Z two$/);
  });

  test("follow until the container has ended", async () => {
    const log = logOf("one\n");
    let running = true;
    const all = textOf(log, { follow: true }, () => running);
    await new Promise((resolve) => setTimeout(resolve, 30));
    appendFileSync(log.file, "two\n");
    await new Promise((resolve) => setTimeout(resolve, 30));
    appendFileSync(log.file, "three\n");
    running = false;
    expect(await all).toBe("one\ntwo\nthree\n");
  });

  test("begin with what was rotated away", async () => {
    const log = logOf("new\n");
    writeFileSync(log.rotated, "old\n");
    expect(await textOf(log, {})).toBe("old\nnew\n");
  });
});

test.each(["tailLines=-1", "limitBytes=x", "sinceTime=yesterday"])(
  "%s is refused by name",
  (query) => {
    expect(() => parseLogOptions(new URLSearchParams(query))).toThrow(query.split("=")[0]);
  },
);

test("a file that has grown too long is cut, and the writer goes on", async () => {
  const log = logOf("");
  log.open();
  const line = `${"x".repeat(1023)}\n`;
  appendFileSync(log.file, line.repeat(10 * 1024 + 1));
  await expect.poll(() => textOf(log, { tailLines: 1 }), { timeout: 5_000 }).toBe("");
  appendFileSync(log.file, "after\n");
  expect(await textOf(log, { tailLines: 1 })).toBe("after\n");
  expect((await textOf(log, {})).length).toBe(1024 * (10 * 1024 + 1) + 6);
  log.close();
});
