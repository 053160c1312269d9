import { appendFileSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ManualClock, systemClock } from "@spry/kube";
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

  test("begin with what was rotated away, the oldest first", async () => {
    const { file } = logOf("new\n");
    writeFileSync(`${file}.1`, "old\n");
    writeFileSync(`${file}.2`, "oldest\n");
    const log = new LogFile(file, systemClock);
    expect(await textOf(log, {})).toBe("oldest\nold\nnew\n");
    expect(await textOf(log, { tailLines: 2 })).toBe("old\nnew\n");
  });

  test("of a container that has ended leave out what is too old", async () => {
    const { file } = logOf("new\n");
    writeFileSync(`${file}.1`, "old\n");
    const hourAgo = (Date.now() - 3_600_000) / 1000;
    utimesSync(`${file}.1`, hourAgo, hourAgo);
    expect(await textOf(new LogFile(file, systemClock), { sinceSeconds: 60 })).toBe("new\n");
  });
});

test.each(["tailLines=-1", "limitBytes=x", "sinceTime=yesterday"])(
  "%s is refused by name",
  (query) => {
    expect(() => parseLogOptions(new URLSearchParams(query))).toThrow(query.split("=")[0]);
  },
);

test("a log that grows is rotated and bounded, and who follows it misses no line", async () => {
  const { file } = logOf("");
  const log = new LogFile(file, systemClock, { bytes: 1000, files: 3 });
  log.open();
  let running = true;
  const followed = textOf(log, { follow: true }, () => running);
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i} ${"x".repeat(90)}\n`);
  for (const [i, line] of lines.entries()) {
    appendFileSync(file, line);
    // Until the log has been cut, so that each rotation has the same lines.
    if (i % 11 === 10)
      await expect.poll(() => statSync(file).size, { timeout: 5_000 }).toBeLessThan(1000);
  }
  running = false;
  expect(await followed).toBe(lines.join(""));
  expect(await textOf(log, {})).toBe(lines.slice(33).join(""));
  expect(await textOf(log, { tailLines: 20 })).toBe(lines.slice(-20).join(""));
  expect(readdirSync(path.dirname(file)).toSorted()).toEqual(["0.log", "0.log.1", "0.log.2"]);
  log.close();
});

test.each([
  { name: "a log that grows too fast is reported once", gapMs: 0, floods: 1 },
  { name: "one that takes its time is not", gapMs: 13_000, floods: 0 },
])("$name", async ({ gapMs, floods }) => {
  const clock = new ManualClock();
  const file = path.join(temporaryDirectory(), "0.log");
  writeFileSync(file, "");
  let told = 0;
  const limits = { bytes: 1_000_000, files: 3 };
  const log = new LogFile(file, clock, limits, { bytes: 1000, ms: 10_000 });
  log.open(() => told++);
  for (let i = 0; i < 4; i++) {
    appendFileSync(file, "x".repeat(600));
    // What was written is seen by looking at the file, now or two seconds later by the clock.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await clock.advance(Math.max(gapMs, 60));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  log.close();
  expect(told).toBe(floods);
});
