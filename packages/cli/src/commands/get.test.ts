import { describe, expect, test } from "vitest";
import { type Function, type FunctionCondition } from "@spry/function";
import { age, statusWord } from "./get.ts";

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
