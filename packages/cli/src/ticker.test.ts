import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { elapsed, Ticker } from "./ticker.ts";

let written = "";
const terminal = (columns = 80) => ({
  isTTY: true,
  columns,
  write: (text: string | Uint8Array) => ((written += String(text)), true),
});
beforeEach(() => {
  written = "";
  vi.stubEnv("TERM", "xterm");
  vi.stubEnv("NO_COLOR", "1");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});
/** What is left on the line. */
const shown = () => written.split("\r\u001b[2K").at(-1);

test("what takes more than a second is counted on one line, which is cleared at the end", () => {
  const ticker = new Ticker(terminal());
  ticker.wait("  … build");
  vi.advanceTimersByTime(900);
  expect(written).toBe("");
  vi.advanceTimersByTime(2200);
  expect(shown()).toBe("  … build 3 s");
  ticker.clear();
  expect(shown()).toBe("");
  vi.advanceTimersByTime(1000);
  expect(shown()).toBe("  … build 4 s");
  ticker.wait("  … start");
  expect(shown()).toBe("");
  vi.advanceTimersByTime(1000);
  expect(shown()).toBe("  … start 1 s");
  ticker.stop();
  vi.advanceTimersByTime(5000);
  expect(shown()).toBe("");
});

test("the line is never longer than the terminal", () => {
  new Ticker(terminal(20)).wait("a text that is longer than this");
  vi.advanceTimersByTime(1000);
  expect(shown()).toBe("a text that is… 1 s");
});

test("other outputs than terminals, and those without a cursor, get nothing", () => {
  new Ticker({ ...terminal(), isTTY: false }).wait("build");
  vi.stubEnv("TERM", "dumb");
  new Ticker(terminal()).wait("build");
  vi.advanceTimersByTime(5000);
  expect(written).toBe("");
});

test.each([
  [999, "0 s"],
  [59_999, "59 s"],
  [125_000, "2 min 5 s"],
])("%d ms read %s", (ms, text) => {
  expect(elapsed(ms)).toBe(text);
});
