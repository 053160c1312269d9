/** Knative's algorithm by rows: what is observed, and how many Pods follow. */
import { describe, expect, test } from "vitest";
import { autoscalerSettings } from "../settings/autoscaler-settings.ts";
import { kservice } from "../testing/platform.ts";
import { Autoscaler } from "./autoscaler.ts";
import { initialScaleOf, type ScaleSpec, scaleSpecOf } from "./scale-spec.ts";

const scale = "autoscaling.knative.dev";

function revision(annotations: Record<string, string> = {}, spec: object = {}) {
  const { template } = kservice("hello", spec).spec;
  const labels = { "serving.knative.dev/routingState": "active" };
  return { metadata: { name: "hello-00001", labels, annotations }, spec: template.spec };
}

function specOf(annotations: Record<string, string> = {}, more: Partial<ScaleSpec> = {}) {
  return { ...scaleSpecOf(revision(annotations), autoscalerSettings()), ...more };
}

/** Target 10 at 70 %: each Pod is to have 7 requests at a time. */
const ten = { [`${scale}/target`]: "10" };

describe("targets", () => {
  test.each([
    ["the default", {}, {}, 70, 100],
    ["the Revision's limit", {}, { containerConcurrency: 10 }, 7, 10],
    ["an annotation", ten, {}, 7, 10],
    ["never above the limit", { [`${scale}/target`]: "50" }, { containerConcurrency: 10 }, 7, 10],
    ["its own utilization", { ...ten, [`${scale}/targetUtilizationPercentage`]: "90" }, {}, 9, 10],
    ["requests a second", { [`${scale}/metric`]: "rps" }, {}, 140, 200],
    ["never nothing", { [`${scale}/target`]: "0.01" }, {}, 0.01, 0.01],
  ] as const)("%s", (_, annotations, spec, target, total) => {
    const made = scaleSpecOf(revision(annotations, spec), autoscalerSettings());
    expect(made.target).toBeCloseTo(target);
    expect(made.total).toBe(total);
  });

  test.each([
    ["1 by default", {}, {}, 1],
    ["as the annotation says", { [`${scale}/initial-scale`]: "3" }, {}, 3],
    ["at least the minimum", { [`${scale}/min-scale`]: "4" }, {}, 4],
    [
      "at most the maximum",
      { [`${scale}/initial-scale`]: "5", [`${scale}/max-scale`]: "2" },
      {},
      2,
    ],
    [
      "0 where that is allowed",
      { [`${scale}/initial-scale`]: "0" },
      { "allow-zero-initial-scale": "true" },
      0,
    ],
    ["not 0 where it is not", { [`${scale}/initial-scale`]: "0" }, {}, 1],
  ] as const)("the initial scale: %s", (_, annotations, data, pods) => {
    expect(initialScaleOf(revision(annotations), autoscalerSettings(data))).toBe(pods);
  });
});

describe("one observation", () => {
  test.each([
    // stable, panic, ready → pods, panicking
    [0, 0, 0, 0, false],
    [0, 0, 1, 0, false],
    [0.1, 0, 0, 1, false],
    [7, 7, 1, 1, false],
    [7.1, 7.1, 2, 2, false],
    // Twice of what there is in the short window: at once.
    [7, 14, 1, 2, true],
    [30, 70, 4, 10, true],
    // The long window counts where it asks for more.
    [70, 60, 4, 10, true],
    // No faster down than by half.
    [0, 0, 8, 4, false],
    [7, 7, 9, 4, false],
  ])("%d and %d with %d Pods ask for %d", (stable, panic, readyPods, pods, panicking) => {
    const autoscaler = new Autoscaler(0, 0);
    const made = autoscaler.suggest(specOf(ten), { now: 0, stable, panic, readyPods });
    expect(made).toMatchObject({ pods, panicking });
  });

  test("no faster up than by the rate, and at least by one", () => {
    const slow = specOf(ten, { maxScaleUpRate: 1.1 });
    const at = (readyPods: number) =>
      new Autoscaler(0, 0).suggest(slow, { now: 0, stable: 700, panic: 0, readyPods }).pods;
    expect([at(1), at(3), at(20)]).toEqual([2, 4, 22]);
  });

  test.each([
    ["the first Pods are as many as it says", 1, 3],
    ["nothing asks for none", 0, 0],
    ["more are not limited", 70, 10],
  ])("activation scale: %s", (_, stable, pods) => {
    const spec = specOf({ ...ten, [`${scale}/activation-scale`]: "3" });
    expect(
      new Autoscaler(0, 0).suggest(spec, { now: 0, stable, panic: 0, readyPods: 0 }).pods,
    ).toBe(pods);
  });

  test.each([
    ["0", 2, 5, 0],
    ["-1", 2, 5, -1],
    ["10", 2, 5, 5],
    ["211", 2, 5, -196],
  ])("burst capacity %s of %d Pods under %d", (burst, readyPods, panic, excess) => {
    const spec = specOf({ ...ten, [`${scale}/target-burst-capacity`]: burst });
    const made = new Autoscaler(0, 0).suggest(spec, { now: 0, stable: 0, panic, readyPods });
    expect(made.excessBurstCapacity).toBe(excess);
  });
});

describe("over time", () => {
  test("in panic the number of Pods only grows, until a stable window after it", () => {
    const autoscaler = new Autoscaler(0, 0);
    const spec = specOf(ten);
    const at = (seconds: number, load: number, readyPods: number) =>
      autoscaler.suggest(spec, { now: seconds * 1000, stable: load, panic: load, readyPods }).pods;
    expect(at(0, 70, 1)).toBe(10);
    expect(at(2, 140, 10)).toBe(20);
    expect(at(30, 7, 20)).toBe(20);
    expect(at(62, 7, 20)).toBe(20);
    expect(at(63, 7, 20)).toBe(10);
  });

  test("one that begins with several Pods keeps them for a window", () => {
    const autoscaler = new Autoscaler(0, 5);
    const at = (now: number) =>
      autoscaler.suggest(specOf(ten), { now, stable: 0, panic: 0, readyPods: 5 }).pods;
    expect([at(0), at(60_000), at(60_001)]).toEqual([5, 5, 2]);
  });

  test("a delay keeps the most of its time", () => {
    const autoscaler = new Autoscaler(0, 0);
    const spec = specOf({ ...ten, [`${scale}/scale-down-delay`]: "10s" });
    const at = (seconds: number, stable: number) =>
      autoscaler.suggest(spec, { now: seconds * 1000, stable, panic: 0, readyPods: 4 }).pods;
    expect(at(0, 28)).toBe(4);
    expect(at(2, 20)).toBe(4);
    expect(at(10, 14)).toBe(4);
    expect(at(11, 14)).toBe(3);
    expect(at(13, 14)).toBe(2);
    expect(at(14, 35)).toBe(5);
  });
});
