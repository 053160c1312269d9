import { describe, expect, test } from "vitest";
import { type Function } from "../types.ts";
import { repositoryNameOf, toV1alpha1, toV1alpha2 } from "./convert.ts";
import { type FunctionV1alpha1, type GitRepository } from "./types.ts";

const group = "serverless.kyma-project.io";
const old = (
  spec: Partial<FunctionV1alpha1["spec"]>,
  metadata: Record<string, unknown> = {},
): FunctionV1alpha1 => ({
  apiVersion: `${group}/v1alpha1`,
  kind: "Function",
  metadata: { name: "fn", namespace: "shop", ...metadata },
  spec: { source: "code", ...spec },
});
const current = (
  spec: Partial<Function["spec"]>,
  metadata: Record<string, unknown> = {},
): Function => ({
  apiVersion: `${group}/v1alpha2`,
  kind: "Function",
  metadata: { name: "fn", namespace: "shop", ...metadata },
  spec: { source: { inline: { source: "code" } }, replicas: 1, ...spec },
});
const repository: GitRepository = {
  metadata: { name: "repo", namespace: "shop" },
  spec: { url: "https://git.example/shop.git", auth: { type: "basic", secretName: "login" } },
};
const limits = { limits: { cpu: "1" } };
const oldGit = { type: "git", source: "repo", baseDir: "/", reference: "main" } as const;
const newGit = {
  source: {
    gitRepository: { ...repository.spec, baseDir: "/", reference: "main" },
  },
};

/** Both ways: what is left becomes what is right, and that what was left. */
const pairs: [string, FunctionV1alpha1, Function][] = [
  [
    "code and dependencies",
    old({ deps: "{}", runtime: "nodejs24", minReplicas: 1, maxReplicas: 1 }),
    current({
      runtime: "nodejs24",
      source: { inline: { source: "code", dependencies: "{}" } },
      scaleConfig: { minReplicas: 1, maxReplicas: 1 },
    }),
  ],
  [
    "a range of replicas",
    old({ minReplicas: 2, maxReplicas: 5 }),
    current({ replicas: 2, scaleConfig: { minReplicas: 2, maxReplicas: 5 } }),
  ],
  [
    "resources and labels of Pods",
    old({
      resources: limits,
      buildResources: limits,
      labels: { a: "b" },
      minReplicas: 1,
      maxReplicas: 1,
    }),
    current({
      labels: { a: "b" },
      resourceConfiguration: { function: { resources: limits }, build: { resources: limits } },
      scaleConfig: { minReplicas: 1, maxReplicas: 1 },
    }),
  ],
  [
    "presets, which were labels",
    old(
      { minReplicas: 1, maxReplicas: 1 },
      {
        labels: {
          mine: "1",
          [`${group}/function-resources-preset`]: "S",
          [`${group}/build-resources-preset`]: "fast",
        },
      },
    ),
    current(
      {
        resourceConfiguration: { function: { profile: "S" }, build: { profile: "fast" } },
        scaleConfig: { minReplicas: 1, maxReplicas: 1 },
      },
      { labels: { mine: "1" } },
    ),
  ],
  [
    "a Git source, whose repository is remembered",
    old({ ...oldGit, minReplicas: 1, maxReplicas: 1 }),
    current(
      { ...newGit, scaleConfig: { minReplicas: 1, maxReplicas: 1 } },
      { annotations: { [`${group}/v1alpha1GitRepoName`]: "repo" } },
    ),
  ],
];

describe.each(pairs)("%s", (_, before, after) => {
  test("up", () => {
    const needed = repositoryNameOf(before) === undefined ? undefined : repository;
    expect(toV1alpha2(before, needed)).toEqual(after);
  });
  test("down", () => expect(toV1alpha1(after)).toEqual(before));
});

test("a Function that was never v1alpha1 and is from Git names no repository there", () => {
  expect(toV1alpha1(current(newGit)).spec).toMatchObject({ type: "git", source: "" });
});

test("replicas without a range are a range of one number", () => {
  expect(toV1alpha1(current({ replicas: 3 })).spec).toMatchObject({
    minReplicas: 3,
    maxReplicas: 3,
  });
});

test("without a number of replicas it is one", () => {
  expect(toV1alpha2(old({})).spec).toEqual({ source: { inline: { source: "code" } }, replicas: 1 });
});

test("conditions are reported in both", () => {
  const conditions = [{ type: "Running", status: "True", reason: "DeploymentReady", message: "" }];
  const fn = { ...current({}), status: { conditions, commit: "abc" } } as Function;
  expect(toV1alpha1(fn).status).toEqual({ conditions, commit: "abc" });
});

test("a source that is an image survives the way down and up, unless v1alpha1 has written another one", () => {
  const image = `registry.example/default/hello@sha256:${"a".repeat(64)}`;
  const fn: Function = { metadata: { name: "hello" }, spec: { source: { image }, replicas: 1 } };
  const down = toV1alpha1(fn);
  expect(down.spec).toMatchObject({ source: "" });
  expect(toV1alpha2(down)).toMatchObject({ metadata: { name: "hello" }, spec: fn.spec });
  expect(toV1alpha2(down).metadata).toEqual({ name: "hello" });
  const edited = { ...down, spec: { ...down.spec, source: "code" } };
  expect(toV1alpha2(edited).spec.source).toEqual({ inline: { source: "code" } });
});
