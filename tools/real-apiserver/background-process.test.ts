import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endProcess, isRunning, lastLines, startInBackground } from "./background-process.ts";
import { until } from "./until.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "background-process-"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const start = (name: string, script: string) =>
  startInBackground(name, process.execPath, ["-e", script], {
    cwd: dir,
    log: path.join(dir, `${name}.log`),
  });

test("runs until it is ended, and what it wrote is kept", async () => {
  const one = start("steady", "console.log('first\\nsecond'); setInterval(() => {}, 1000)");
  expect(isRunning(one)).toBe(true);
  await until("it has written", { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000 }, () =>
    Promise.resolve(lastLines(one).includes("second")),
  );
  await endProcess(one, 10_000);
  expect(isRunning(one)).toBe(false);
  expect(lastLines(one, 1)).toBe("second");
});

test("what ignores SIGTERM is ended all the same", async () => {
  const one = start(
    "stubborn",
    "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)",
  );
  await until("it is up", { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000 }, () =>
    Promise.resolve(lastLines(one) === "up"),
  );
  await endProcess(one, 100);
  expect(isRunning(one)).toBe(false);
});

test.runIf(process.platform === "linux")(
  "another process with the same pid is neither taken for it nor ended",
  async () => {
    const stranger = { name: "x", pid: process.pid, startTime: "1", log: "" };
    expect(isRunning(stranger)).toBe(false);
    await endProcess(stranger, 100);
  },
);

test("a program that is not there is an error that names it", () => {
  expect(() =>
    startInBackground("nothing", path.join(dir, "nothing"), [], {
      cwd: dir,
      log: path.join(dir, "nothing.log"),
    }),
  ).toThrow(/nothing/);
});
