import { expect, test } from "vitest";
import { isServedOnDemand } from "./serving.ts";
import { type FunctionSpec } from "./types.ts";
import { validateFunction } from "./validate.ts";

const source = { inline: { source: "x" } };

test.each<[string, Partial<FunctionSpec>, boolean]>([
  ["nothing about serving", {}, false],
  ["bounds above zero", { scaleConfig: { minReplicas: 1, maxReplicas: 3 } }, false],
  ["replicas set to zero by a scaler", { replicas: 0 }, false],
  ["a timeout only", { timeoutSeconds: 5 }, false],
  ["no traffic entries", { traffic: [] }, false],
  ["an empty concurrency", { concurrency: {} }, false],
  ["a minimum of zero", { scaleConfig: { minReplicas: 0, maxReplicas: 3 } }, true],
  ["a concurrency target", { concurrency: { target: 5 } }, true],
  ["a concurrency limit", { concurrency: { limit: 1 } }, true],
  ["traffic", { traffic: [{ revision: 3, percent: 100 }] }, true],
])("%s: served on demand?", (_name, spec, expected) => {
  const fn = { metadata: { name: "dice" }, spec: { source, ...spec } };
  expect(validateFunction(fn)).toEqual([]);
  expect(isServedOnDemand(fn.spec)).toBe(expected);
});
