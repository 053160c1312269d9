import { describe, expect, test } from "vitest";
import { type Function, type FunctionCondition } from "@spry/function";
import { shownState, statusWord } from "../shown-state.ts";
import { age } from "./get.ts";

const now = Date.parse("2026-01-01T00:00:00Z");

test.each([
  [0, "0s"],
  [119, "119s"],
  [120, "2m"],
  [2 * 3600 - 1, "119m"],
  [2 * 3600, "2h"],
  [48 * 3600, "2d"],
])("an age of %d seconds reads %s", (seconds, text) => {
  expect(age(new Date(now - seconds * 1000).toISOString(), now)).toBe(text);
});

describe("one word for all conditions", () => {
  const rows: [string, string, Partial<Record<FunctionCondition["type"], string>>][] = [
    ["nothing said yet", "Initializing", {}],
    ["a wrong spec", "Invalid", { ConfigurationReady: "False", Running: "True" }],
    ["being built", "Building", { ConfigurationReady: "True", BuildReady: "Unknown" }],
    [
      "a failed build",
      "BuildFailed",
      { ConfigurationReady: "True", BuildReady: "False", Running: "True" },
    ],
    [
      "on its way",
      "Deploying",
      { ConfigurationReady: "True", BuildReady: "True", Running: "Unknown" },
    ],
    [
      "a failed deployment",
      "Failed",
      { ConfigurationReady: "True", BuildReady: "True", Running: "False" },
    ],
    ["all well", "Running", { ConfigurationReady: "True", BuildReady: "True", Running: "True" }],
  ];
  test.each(rows)("%s: %s", (_name, word, statuses) => {
    const conditions = Object.entries(statuses).map(([type, status]) => ({ type, status }));
    expect(
      statusWord({
        metadata: {},
        spec: { source: {} },
        status: { conditions },
      } as unknown as Function),
    ).toBe(word);
  });
});

describe("the version that serves is named where the newest one does not", () => {
  const state = (failing: string, revision: number | undefined, newest: number | undefined) => {
    const types = ["ConfigurationReady", "BuildReady", "Running"];
    const conditions = types.map((type) => ({ type, status: type === failing ? "False" : "True" }));
    const fn = { metadata: {}, spec: { source: {} }, status: { conditions, revision } };
    return shownState(fn as unknown as Function, newest);
  };
  test.each([
    ["Running", 1, 2, "Failed, version 1 serves"],
    ["BuildReady", 1, undefined, "BuildFailed, version 1 serves"],
    ["ConfigurationReady", 3, 3, "Invalid, version 3 serves"],
    ["Running", 2, 2, "Failed"],
    ["Running", undefined, 1, "Failed"],
    ["Running", 1, undefined, "Failed"],
    ["none", 2, 2, "Running"],
  ])(
    "%s fails, version %s has served and %s is the newest: %s",
    (failing, serving, newest, text) => {
      expect(state(failing, serving, newest)).toBe(text);
    },
  );
});
