import { describe, expect, test } from "vitest";
import {
  type FunctionRevision,
  isSameVersion,
  recordedSpec,
  restoredSpec,
  revisionsOf,
} from "./history.ts";
import { type Function, type FunctionSpec } from "./types.ts";

const inline = (source: string): FunctionSpec => ({
  runtime: "nodejs24",
  source: { inline: { source } },
});
const git = (reference: string): FunctionSpec => ({
  source: { gitRepository: { url: "https://git.example/a", baseDir: "/", reference } },
});
const commit = "a".repeat(40);
const image = `registry/shop/dice@sha256:${"1".repeat(64)}`;

test("of a spec, replicas and traffic are not history", () => {
  const spec = { ...inline("a"), replicas: 3, traffic: [{ latest: true, percent: 100 }] };
  expect(recordedSpec(spec)).toEqual(inline("a"));
});

describe("two versions are the same", () => {
  const scaleConfig = { minReplicas: 1, maxReplicas: 2 };
  test.each<[string, Parameters<typeof isSameVersion>, boolean]>([
    ["with the same code", [{ spec: inline("a") }, { spec: inline("a") }], true],
    ["not with other code", [{ spec: inline("a") }, { spec: inline("b") }], false],
    [
      "however they are scaled",
      [{ spec: inline("a") }, { spec: { ...inline("a"), scaleConfig, replicas: 2 } }],
      true,
    ],
    [
      "not with other variables",
      [{ spec: inline("a") }, { spec: { ...inline("a"), env: [{ name: "A", value: "1" }] } }],
      false,
    ],
    [
      "with a commit by whatever name",
      [
        { spec: git("main"), commit },
        { spec: git(commit), commit },
      ],
      true,
    ],
    [
      "not with another commit of a branch",
      [
        { spec: git("main"), commit },
        { spec: git("main"), commit: "b" },
      ],
      false,
    ],
  ])("%s", (_, [a, b], same) => expect(isSameVersion(a, b)).toBe(same));
});

describe("the spec that returns to a revision", () => {
  test("is the revision's, with the present scaling and traffic", () => {
    const present = {
      ...inline("new"),
      env: [{ name: "NEW", value: "1" }],
      replicas: 4,
      scaleConfig: { minReplicas: 2, maxReplicas: 5 },
      traffic: [{ latest: true, percent: 100 }],
    };
    const old = { ...inline("old"), scaleConfig: { minReplicas: 1, maxReplicas: 1 } };
    const { replicas, scaleConfig, traffic } = present;
    expect(restoredSpec(present, { spec: old, image })).toEqual({
      ...inline("old"),
      replicas,
      scaleConfig,
      traffic,
    });
  });

  test("has no bounds when the Function has none now", () => {
    const old = { ...inline("old"), scaleConfig: { minReplicas: 1, maxReplicas: 1 } };
    expect(restoredSpec(inline("new"), { spec: old, image })).toEqual(inline("old"));
  });

  test("names the commit of a Git source", () => {
    expect(restoredSpec(git("main"), { spec: git("main"), commit, image })).toEqual(git(commit));
  });
});

test("a Function's revisions are those that it owns and that can be read, newest first", () => {
  const fn = { metadata: { name: "dice", uid: "u" }, spec: inline("a") } as Function;
  const revision = (
    number: number,
    uid = "u",
    data: unknown = { spec: inline("a"), image, buildKey: "k" },
  ) =>
    ({
      metadata: { name: `dice-${number}`, ownerReferences: [{ uid, controller: true }] },
      revision: number,
      data,
    }) as unknown as FunctionRevision;
  const others = [revision(7, "v"), revision(8, "u", { spec: "x" }), revision(9, "u", {})];
  others.push({ ...revision(10), data: null as never });
  const found = revisionsOf(fn, [revision(2), revision(11), ...others, revision(3)]);
  expect(found.map((each) => each.revision)).toEqual([11, 3, 2]);
});
