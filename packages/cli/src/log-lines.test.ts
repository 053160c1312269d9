import { expect, test } from "vitest";
import { shownLine } from "./log-lines.ts";

const text = "2026-01-01T00:00:00.000Z WARN  [abc] disk is full";
const json = JSON.stringify({ time: "t", level: "error", message: "no", invocation: "r1" });

test("levels and requests choose lines of both formats", () => {
  expect(shownLine(text, undefined, { level: "error" }, false)).toBeUndefined();
  expect(shownLine(text, undefined, { level: "warn" }, false)).toBe(text);
  expect(shownLine(json, undefined, { level: "error", request: "r1" }, false)).toBe(json);
  expect(shownLine(json, undefined, { request: "r2" }, false)).toBeUndefined();
  // A line without a level is information.
  expect(shownLine("hello", undefined, { level: "warn" }, false)).toBeUndefined();
  expect(shownLine("hello", undefined, { level: "info" }, false)).toBe("hello");
});

test("lines become objects", () => {
  expect(JSON.parse(shownLine(text, "pod", { json: true }, false) ?? "")).toEqual({
    instance: "pod",
    time: "2026-01-01T00:00:00.000Z",
    level: "warn",
    message: "disk is full",
    invocation: "abc",
  });
  expect(JSON.parse(shownLine("{not json", undefined, { json: true }, false) ?? "")).toEqual({
    message: "{not json",
  });
});

test("on a terminal a Function's colours stay, and what could steer the terminal does not", () => {
  const hostile = "\u001b[31mred\u001b[0m\t\u001b]0;title\u0007\u001b[2J";
  expect(shownLine(hostile, undefined, {}, true)).toBe(
    "\u001b[31mred\u001b[0m\t\uFFFD]0;title\uFFFD\uFFFD[2J",
  );
  expect(shownLine(hostile, undefined, {}, false)).toBe(hostile);
});
