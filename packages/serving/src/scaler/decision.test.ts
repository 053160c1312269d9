/** From a suggestion to replicas, by rows: bounds, the way to zero, and what is not known. */
import { describe, expect, test } from "vitest";
import { autoscalerSettings } from "../settings/autoscaler-settings.ts";
import { kservice } from "../testing/platform.ts";
import { decide, type Standing } from "./decision.ts";
import { type ScaleSpec, scaleSpecOf } from "./scale-spec.ts";

const settled: Standing = {
  now: 1_000_000,
  replicas: 2,
  readyPods: 2,
  current: 0,
  initialized: true,
  initialScale: 1,
  activationMs: 630_000,
  activeSince: 0,
  knownSince: 0,
  inactiveSince: undefined,
};

function spec(more: Partial<ScaleSpec> = {}): ScaleSpec {
  const { template } = kservice("hello").spec;
  const revision = { metadata: { name: "hello-00001" }, spec: template.spec };
  return { ...scaleSpecOf(revision, autoscalerSettings()), ...more };
}

const replicas = (
  suggested: number,
  standing: Partial<Standing> = {},
  more: Partial<ScaleSpec> = {},
) => decide(spec(more), { ...settled, ...standing }, suggested).replicas;

describe("bounds", () => {
  test.each([
    ["as suggested", 5, {}, {}, 5],
    ["at least the minimum", 0, {}, { minScale: 2 }, 2],
    ["at most the maximum", 9, {}, { maxScale: 3 }, 3],
    [
      "the initial scale until it was reached",
      0,
      { initialized: false, initialScale: 3, activeSince: 999_999 },
      {},
      3,
    ],
    [
      "no initial scale without a Route",
      0,
      { initialized: false, initialScale: 3, inactiveSince: 0 },
      { reachable: false },
      0,
    ],
    ["a request keeps one", 0, { current: 1, inactiveSince: 0 }, {}, 1],
    ["a request at zero begins one", 0, { current: 1, replicas: 0 }, {}, 1],
  ] as const)("%s", (_, suggested, standing, more, expected) => {
    expect(replicas(suggested, standing, more)).toBe(expected);
  });
});

describe("to zero", () => {
  test.each([
    ["not before the grace period", { inactiveSince: 970_001 }, {}, 2],
    ["after it", { inactiveSince: 970_000 }, {}, 0],
    ["not before the retention", { inactiveSince: 910_000 }, { retentionMs: 90_001 }, 2],
    ["not before it was active for a window", { activeSince: 940_001, inactiveSince: 0 }, {}, 1],
    ["never where it is switched off", { inactiveSince: 0 }, { scaleToZero: false }, 1],
    ["never below the minimum", { inactiveSince: 0 }, { minScale: 1 }, 1],
  ] as const)("%s", (_, standing, more, expected) => {
    expect(replicas(0, standing, more)).toBe(expected);
  });

  test("the time without work begins with the first suggestion of none", () => {
    expect(decide(spec(), settled, 0)).toEqual({ replicas: 2, inactiveSince: settled.now });
    expect(decide(spec(), { ...settled, inactiveSince: 5 }, 1).inactiveSince).toBeUndefined();
  });

  test("what does not get ready in time is given up", () => {
    const starting = { initialized: false, replicas: 1, readyPods: 0, activeSince: 370_001 };
    expect(replicas(0, starting)).toBe(1);
    expect(replicas(0, { ...starting, activeSince: 370_000 })).toBe(0);
    expect(replicas(0, { ...starting, activeSince: 370_000, current: 1 })).toBe(1);
  });
});

describe("nothing is taken away while it is not known what there is to do:", () => {
  test.each([
    ["no gateway has said anything", undefined, 2],
    ["for less than a window", 940_001, 2],
    ["for a window", 940_000, 0],
  ])("%s", (_, knownSince, expected) => {
    expect(replicas(0, { knownSince, inactiveSince: 0 })).toBe(expected);
  });

  test("but more Pods are given", () => {
    expect(replicas(5, { knownSince: undefined })).toBe(5);
  });
});
