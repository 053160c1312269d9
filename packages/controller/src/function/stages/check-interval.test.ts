import { annotations } from "@spry/function";
import { expect, test } from "vitest";
import { functionOf } from "../../testing/objects.ts";
import { checkIntervalOf } from "./check-interval.ts";

const every = annotations.gitCheckInterval;
const continuous = annotations.continuousGitCheckout;

test.each<[Record<string, string>, number, boolean]>([
  [{}, 60_000, false],
  [{ [every]: "30s" }, 30_000, false],
  [{ [every]: " 5m " }, 300_000, false],
  [{ [every]: "2h" }, 7_200_000, false],
  [{ [every]: "1s" }, 5000, false],
  [{ [every]: "999999h" }, 86_400_000, false],
  [{ [every]: "off" }, 0, false],
  [{ [every]: "soon" }, 60_000, true],
  [{ [every]: "-5s" }, 60_000, true],
  [{ [every]: "" }, 60_000, true],
  [{ [continuous]: "true" }, 10_000, false],
  [{ [continuous]: "false" }, 60_000, false],
  [{ [continuous]: "true", [every]: "1h" }, 3_600_000, false],
])("%j is checked every %d ms; warning: %s", (all, intervalMs, isWarned) => {
  const fn = functionOf();
  const annotated = { ...fn, metadata: { ...fn.metadata, annotations: all } };
  const { warning, ...rest } = checkIntervalOf(annotated, 60_000);
  expect(rest).toEqual({ intervalMs });
  expect(warning !== undefined).toBe(isWarned);
});
