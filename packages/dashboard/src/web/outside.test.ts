/** Nothing from outside can throw in a view: objects, YAML, stored values. */
import { type Arbitrary, array, assert, jsonValue, nat, property, tuple } from "fast-check";
import {
  type Function,
  type FunctionRevision,
  revisionsOf,
  validateFunction,
} from "@spry/function";
import { type Job, type Pod } from "@spry/kube";
import { dumpYaml } from "@spry/kube/yaml";
import { describe, expect, test } from "vitest";
import { readable } from "./api/object-shapes.ts";
import { buildLimitOf, buildQueue, buildsText } from "./state/build-queue.ts";
import { asCommand } from "./state/call-request.ts";
import { chainOf, isReady, podProblem } from "./state/chain.ts";
import { desiredOf, desiredShape, type Desired } from "./state/changes.ts";
import { problemOf, sourceOf, stateOf } from "./state/function-state.ts";
import { listedFunctions } from "./state/listed-functions.ts";
import { mergeThreeWays } from "./state/merge.ts";
import { knownRepositories } from "./state/registry.ts";
import { fit, fitted } from "./state/shape.ts";
import { store, stored } from "./state/tab-storage.ts";
import { collectorOf } from "./state/tracing.ts";
import { readYaml, yamlOf } from "./state/yaml.ts";

const fn = {
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: {
    name: "a",
    namespace: "b",
    uid: "u",
    generation: 2,
    labels: { a: "b" },
    annotations: { c: "d" },
    ownerReferences: [],
    creationTimestamp: "2026-01-01T00:00:00Z",
  },
  spec: {
    runtime: "nodejs24",
    source: {
      inline: { source: "x", dependencies: "{}" },
      gitRepository: { url: "https://x", reference: "main", baseDir: "/", auth: { type: "key" } },
    },
    env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
    scaleConfig: { minReplicas: 1, maxReplicas: 2 },
    resourceConfiguration: { function: { profile: "S" } },
    traffic: [{ latest: true, percent: 100 }],
    schedules: [{ name: "n", cron: "0 3 * * *" }],
    labels: { x: "y" },
  },
  status: {
    conditions: [
      {
        type: "BuildReady",
        status: "Unknown",
        reason: "JobWaiting",
        message: "build slot: at most 2 builds",
      },
      { type: "Running", status: "False", reason: "X", message: "Warning" },
    ],
    build: { key: "k", image: "r/x@sha256:0123456789abcdef" },
    revision: 1,
  },
};
const pod = {
  metadata: { name: "p", labels: { a: "b" } },
  spec: { containers: [{ name: "c", env: [{ name: "TRACE_COLLECTOR_ENDPOINT", value: "x" }] }] },
  status: {
    phase: "Running",
    conditions: [{ type: "Ready", status: "True" }],
    containerStatuses: [{ name: "c", restartCount: 1, state: { waiting: { reason: "R" } } }],
  },
};
const job = {
  metadata: {
    name: "j",
    namespace: "b",
    labels: { "serverless.kyma-project.io/function-name": "a" },
  },
  status: { active: 1, conditions: [{ type: "Complete", status: "True" }] },
};
const revision = {
  metadata: {
    name: "r",
    labels: { "serverless.kyma-project.io/function-name": "a" },
    ownerReferences: [{ kind: "Function", name: "a", uid: "u", controller: true }],
  },
  revision: 1,
  data: { spec: fn.spec, image: "r@sha256:1", buildKey: "k", time: "t" },
};

const anyJson = jsonValue({ maxDepth: 2 });

/** The value with one to three of its parts replaced by anything. */
const damaged = <T extends object>(value: T): Arbitrary<T> =>
  array(tuple(nat(), anyJson), { minLength: 1, maxLength: 3 }).map((hits) => {
    let result: unknown = structuredClone(value);
    for (const [nth, put] of hits) {
      const places: [holder: Record<string, unknown>, key: string][] = [];
      const walk = (each: unknown) => {
        if (typeof each !== "object" || each === null) return;
        for (const [key, child] of Object.entries(each)) {
          places.push([each as Record<string, unknown>, key]);
          walk(child);
        }
      };
      walk(result);
      const place = places[nth % (places.length + 1)];
      if (place) place[0][place[1]] = put;
      else result = put;
    }
    return result as T;
  });

describe("objects that no schema has seen", () => {
  test("can be read by every view of Functions", () => {
    assert(
      property(damaged(fn), damaged(pod), (someFn, somePod) => {
        const object = readable("functions", someFn as unknown as Function);
        const one = readable("pods", somePod as unknown as Pod);
        stateOf(object);
        problemOf(object);
        sourceOf(object);
        chainOf(object, [one]);
        isReady(one);
        podProblem(one);
        collectorOf([one]);
        listedFunctions.transform(object);
        validateFunction(object);
        const desired = desiredOf(object);
        yamlOf({ name: "a", namespace: "b" }, desired);
        mergeThreeWays(desired, desiredOf(fn as unknown as Function), desired);
      }),
      { numRuns: 500 },
    );
  });

  test("can be read by the views around Functions", () => {
    assert(
      property(damaged(fn), damaged(job), damaged(revision), (someFn, someJob, someRevision) => {
        const functions = [readable("functions", someFn as unknown as Function)];
        const jobs = [readable("jobs", someJob as unknown as Job)];
        const revisions = [
          readable("controllerrevisions", someRevision as unknown as FunctionRevision),
        ];
        buildsText(jobs, buildQueue(functions, jobs));
        buildLimitOf(functions);
        knownRepositories(revisions);
        for (const each of functions) revisionsOf(each, revisions);
      }),
      { numRuns: 500 },
    );
  });

  test("stay the same object where nothing is wrong", () => {
    expect(readable("functions", fn)).not.toBe(fn); // auth has no secretName
    const { auth: _auth, ...gitRepository } = fn.spec.source.gitRepository;
    const right = { ...fn, spec: { ...fn.spec, source: { ...fn.spec.source, gitRepository } } };
    expect(readable("functions", right)).toBe(right);
    expect(readable("pods", pod)).toBe(pod);
    expect(readable("unknown", pod)).toBe(pod);
  });
});

describe("YAML", () => {
  const yamlWith = (spec: string) =>
    `apiVersion: serverless.kyma-project.io/v1alpha2\nkind: Function\nmetadata:\n  name: a\nspec:\n${spec}`;
  const source = "  source:\n    inline:\n      source: x\n";

  test.each<[spec: string, line: number, problem: RegExp]>([
    ["  source:", 6, /spec.source.*null/],
    ["  source: 5", 6, /spec.source/],
    ["  source:\n    inline: text", 7, /spec.source.inline.*object/],
    ["  source:\n    inline:", 7, /spec.source.inline/],
    ["  source:\n    inline:\n      source: 5", 8, /spec.source.inline.source/],
    ["  source:\n    gitRepository: {}", 7, /url is required/],
    [`${source}  env: { A: b }`, 9, /spec.env/],
    [`${source}  env: [null]`, 9, /spec.env\[0\]/],
    [`${source}  env:\n    - name: A\n      value: b\n    - name: 5`, 12, /spec.env\[1\].name/],
    [`${source}  schedules: {}`, 9, /spec.schedules/],
    [`${source}  schedules:\n    - name: a`, 10, /cron is required/],
    [`${source}  traffic: [5]`, 9, /spec.traffic\[0\]/],
    [`${source}  scaleConfig: 3`, 9, /spec.scaleConfig/],
    [`${source}  labels: { a: 5 }`, 9, /spec.labels/],
    ["  - 1", 5, /spec/],
    [`  source: &a\n    inline: *a`, 1, /refers to itself/],
    [`${source}  timeoutSeconds: .inf`, 1, /Infinity/],
  ])("%j is not applied, and its line is named", (spec, line, problem) => {
    expect(readYaml(yamlWith(spec))).toEqual({ problem: expect.stringMatching(problem), line });
  });

  test.each([
    ["metadata: 5", /metadata must be a map/],
    ["metadata: { name: 5 }", /metadata.name must be a text/],
    ["metadata: { labels: [a] }", /metadata.labels must be a map/],
    ["metadata: { labels: { a: 1 } }", /metadata.labels.a must be a text/],
  ])("%j is not applied", (metadata, problem) => {
    const text = `apiVersion: serverless.kyma-project.io/v1alpha2\nkind: Function\n${metadata}\nspec:\n${source}`;
    expect(readYaml(text)).toMatchObject({ problem: expect.stringMatching(problem), line: 3 });
  });

  test("of few lines that means billions of values is refused at once", () => {
    const levels = "abcdefghij".split("").map((name, at, all) => {
      const inner = at === 0 ? "x" : `*${all[at - 1]}`;
      return `${name}: &${name} [${Array.from({ length: 10 }, () => inner).join(", ")}]`;
    });
    expect(readYaml(levels.join("\n"))).toMatchObject({ problem: /too many values/ });
  });

  test("of anything is either a problem or a Function that the form can show", () => {
    assert(
      property(damaged(fn), (value) => {
        const read = readYaml(dumpYaml(value));
        if ("problem" in read) return;
        expect(fit(desiredShape, read.desired)).toBe(read.desired);
        yamlOf({ name: read.name ?? "", namespace: read.namespace ?? "" }, read.desired);
      }),
      { numRuns: 500 },
    );
  });
});

describe("stored values", () => {
  test("without a place to store them are not stored, and nothing fails", () => {
    expect(store("x", { a: 1 })).toBe("sessionStorage" in globalThis);
    expect(stored("y", "any")).toBeUndefined();
  });

  test("of any form become what the page can read", () => {
    assert(
      property(anyJson, (value) => {
        const { metadata, spec } = fitted<Desired>(desiredShape, value);
        expect(typeof metadata.labels).toBe("object");
        expect(typeof spec.source).toBe("object");
      }),
    );
  });
});

describe("a request as a command", () => {
  const request = { method: "GET", headers: "", body: "" };
  test.each([
    ["//", "http://a.localhost:1//"],
    ["//host/x", "http://a.localhost:1//host/x"],
    ["/a/../b?c=d", "http://a.localhost:1/a/../b?c=d"],
    ["", "http://a.localhost:1/"],
    ["x", "http://a.localhost:1/x"],
    ["http://[", "http://a.localhost:1/http://["],
  ])("keeps the path %j as it was typed", (path, url) => {
    const { curl, fetch, kubectl } = asCommand;
    expect(curl("http://a.localhost:1/", { ...request, path })).toContain(`'${url}'`);
    expect(fetch("http://a.localhost:1/", { ...request, path })).toContain(JSON.stringify(url));
    kubectl({ namespace: "b", name: "a" }, { ...request, path });
  });
});
