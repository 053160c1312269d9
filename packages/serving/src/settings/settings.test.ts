/** The ConfigMaps of `knative-serving`, by rows: defaults, units, and what is not valid. */
import { describe, expect, test } from "vitest";
import { autoscalerSettings } from "./autoscaler-settings.ts";
import { defaultSettings } from "./default-settings.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import { domainFor, domainSettings } from "./domain-settings.ts";
import { gcSettings } from "./gc-settings.ts";

test.each([
  ["0", 0],
  ["90s", 90_000],
  ["1m30s", 90_000],
  ["1.5h", 5_400_000],
  ["500ms", 500],
  ["-2s", -2_000],
  ["1h0m0s", 3_600_000],
  ["", undefined],
  ["5", undefined],
  ["s", undefined],
  ["1 s", undefined],
  ["1d", undefined],
  [`${"1".repeat(70)}s`, undefined],
])("the duration %j", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  [6_000, "6s"],
  [90_000, "1m30s"],
  [3_600_000, "1h0m0s"],
])("%d ms is written %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("missing maps have Knative's defaults, but for the longest time of a request", () => {
  expect(autoscalerSettings()).toMatchObject({
    scaleToZero: true,
    concurrencyUtilization: 0.7,
    concurrencyTarget: 100,
    rpsTarget: 200,
    targetBurstCapacity: 211,
    maxScaleUpRate: 1000,
    maxScaleDownRate: 2,
    stableWindowMs: 60_000,
    panicWindowPercentage: 10,
    panicThresholdPercentage: 200,
    scaleToZeroGraceMs: 30_000,
    podRetentionMs: 0,
    scaleDownDelayMs: 0,
    initialScale: 1,
    minScale: 0,
    maxScale: 0,
  });
  expect(defaultSettings()).toMatchObject({
    timeoutSeconds: 300,
    // Ours: the longest that a Function may have (`spec.timeoutSeconds`), and the gateway's margin.
    maxTimeoutSeconds: 3605,
    responseStartTimeoutSeconds: 300,
    idleTimeoutSeconds: 0,
    containerConcurrency: 0,
    maxContainerConcurrency: 1000,
    enableServiceLinks: false,
    containerName: "user-container",
  });
  expect(gcSettings()).toEqual({
    sinceCreateMs: 48 * 3_600_000,
    sinceActiveMs: 15 * 3_600_000,
    minNonActive: 20,
    maxNonActive: 1000,
  });
});

test("percentages up to 1 are fractions, and limits can be switched off", () => {
  const percentage = "container-concurrency-target-percentage";
  expect(autoscalerSettings({ [percentage]: "0.5" }).concurrencyUtilization).toBe(0.5);
  expect(autoscalerSettings({ [percentage]: "50" }).concurrencyUtilization).toBe(0.5);
  expect(gcSettings({ "max-non-active-revisions": "disabled" }).maxNonActive).toBe(Infinity);
  expect(defaultSettings({ "enable-service-links": "default" }).enableServiceLinks).toBeUndefined();
});

describe("is not valid:", () => {
  test.each([
    ["stable-window", "5s"],
    ["stable-window", "soon"],
    ["target-burst-capacity", "-2"],
    ["max-scale-up-rate", "1"],
    ["panic-window-percentage", "0"],
    ["initial-scale", "0"],
    ["min-scale", "1.5"],
    ["container-concurrency-target-percentage", "0"],
  ])("%s: %s of config-autoscaler", (key, value) => {
    expect(() => autoscalerSettings({ [key]: value })).toThrow(key);
  });

  test.each([
    ["revision-timeout-seconds", "3700"],
    ["container-concurrency", "2000"],
    ["revision-cpu-request", "much"],
  ])("%s: %s of config-defaults", (key, value) => {
    expect(() => defaultSettings({ [key]: value })).toThrow(key);
  });

  test("less at most than at least of config-gc", () => {
    expect(() => gcSettings({ "max-non-active-revisions": "5" })).toThrow("min-non-active");
  });
});

describe("config-domain", () => {
  const settings = domainSettings({
    _example: "ignored",
    "example.com": "",
    "example.org": "selector:\n  app: shop # of customers\n",
    "fast.example.org": 'selector:\n  app: shop\n  tier: "fast"\n',
  });

  test.each([
    [{}, "example.com"],
    [{ app: "shop" }, "example.org"],
    [{ app: "shop", tier: "fast" }, "fast.example.org"],
    [{ app: "other" }, "example.com"],
  ])("%j is of %s", (labels, domain) => {
    expect(domainFor(settings, labels)).toBe(domain);
  });

  test("without domains, the platform's own is used", () => {
    expect(domainFor(domainSettings(), { app: "shop" })).toBeUndefined();
  });

  test.each([
    [{ "not a domain": "" }, "not a domain"],
    [{ "example.com": "selector" }, "example.com"],
  ])("%j is not valid", (data, words) => {
    expect(() => domainSettings(data as Record<string, string>)).toThrow(words);
  });
});
