import { type UnknownObject } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../index.ts";
import { parseRule } from "./cel-environment.ts";
import { estimatedCost } from "./cel-estimate.ts";
import { CostBudget, evaluateMetered, perCallLimit } from "./cel-meter.ts";
import { type Schema } from "./schema.ts";

const eight = "[1,2,3,4,5,6,7,8]";
const letters = "abcdefghij";
/** Comprehensions within each other, each over its own list. */
const nested = (levels: number, list: (level: number) => string) =>
  Array.from({ length: levels }, (_, level) => `${list(level)}.all(${letters[level]}, `).join("") +
  "a > 0" +
  ")".repeat(levels);
/** `a1` has `a0` twice, `a2` has `a1` twice, and so on: small to hold, and 2^depth elements to compare. */
const doubled = (depth: number): string =>
  Array.from({ length: depth }, (_, i) => i + 1)
    .reduceRight(
      (inner, i) => `cel.bind(a${i}, [a${i - 1}, a${i - 1}], ${inner})`,
      `a${depth} == a${depth}`,
    )
    .replace(/^/, "cel.bind(a0, [0, 0], ") + ")";
const literals = nested(8, () => eight);

const spec: Schema = {
  type: "object",
  properties: {
    tags: { type: "array", items: { type: "string" } },
    few: { type: "array", maxItems: 10, items: { type: "integer" } },
    labels: { type: "object", maxProperties: 20, additionalProperties: { type: "string" } },
    name: { type: "string" },
  },
};

describe("what an expression costs at most, from its schema and its own lists", () => {
  const cost = (rule: string) => estimatedCost(parseRule(rule).ast, spec);

  test.each<[string, number, number]>([
    ["self.name == 'a'", 1, 10],
    ["self.few.all(i, i > 0)", 20, 60],
    ["self.labels.all(k, k != '')", 40, 120],
    ["self.few.all(i, self.few.all(j, i != j))", 200, 900],
    ["self.few.map(i, i + 1).filter(i, i > 2).all(i, i > 0)", 50, 200],
    ["self.tags.all(t, t.size() <= 3)", 2_000_000, 10_000_000],
    ["self.tags.all(a, self.tags.all(b, a != b))", 1e12, Infinity],
    [literals, 8 ** 8, Infinity],
    [`cel.bind(l, ${eight}, ${nested(8, () => "l")})`, 8 ** 8, Infinity],
    [`[${eight}, ${eight}].all(l, ${nested(7, () => "l")})`, 8 ** 7, Infinity],
    ["self.name.split(',').all(part, part != '')", 1, 100],
    ["object.anything.all(a, a.b.all(c, c > 1))", 1, 100],
  ])("%s", (rule, atLeast, atMost) => {
    expect(cost(rule)).toBeGreaterThanOrEqual(atLeast);
    expect(cost(rule)).toBeLessThanOrEqual(atMost);
  });
});

describe("what an expression costs when it is evaluated", () => {
  const evaluated = (expression: string, self: unknown = {}) => {
    const { user } = process.threadCpuUsage();
    try {
      return evaluateMetered(parseRule(expression), { self }, new CostBudget(perCallLimit));
    } finally {
      // Far below what it would take without a limit, on a slow machine too.
      expect((process.threadCpuUsage().user - user) / 1000).toBeLessThan(1500);
    }
  };
  const long = "x".repeat(100_000);
  const many = Array.from({ length: 30_000 }, (_, index) => `item ${index}`);

  test.each<[string, string, unknown]>([
    ["literal lists", literals, {}],
    ["lists that share their parts, compared", doubled(40), {}],
    [
      "literal lists that are mapped",
      `${eight}.map(a, ${eight}).all(x, ${nested(7, () => "x")})`,
      {},
    ],
    ["lists of the object", nested(4, () => "self"), Array.from({ length: 100 }, () => 1n)],
    [
      "texts that double",
      `${eight}.all(a, ${eight}.all(b, ${eight}.all(c, ${eight}.all(d, (self + self).size() > 1))))`,
      long,
    ],
    [
      "texts that are searched",
      "self.all(a, self.all(b, !a.contains(b + 'y')))",
      many.slice(0, 1000),
    ],
    ["sets", "sets.contains(self, self)", many],
    ["distinct items", "self.distinct().size() > 1", many],
    ["comparisons", nested(5, () => eight).replace("a > 0", "self == self"), many],
    ["membership", "self.all(a, a in self)", many],
    ["a replacement", "self.replace('', self).size() > 1", long],
    ["errors on the way", nested(8, () => eight).replace("a > 0", "self.missing"), {}],
  ])("%s are ended at the limit", (_, expression, self) => {
    expect(() => evaluated(expression, self)).toThrow("actual cost limit exceeded");
  });

  test.each<[string, unknown]>([
    ["self.all(a, a.startsWith('item'))", many],
    [nested(4, () => eight), {}],
    ["self.size() > 10 && self.contains('x')", long],
  ])("%s stays below it", (expression, self) => expect(evaluated(expression, self)).toBe(true));

  test("a variable's cost is that of the expression which names it", () => {
    const inner = parseRule(literals);
    const budget = new CostBudget(perCallLimit);
    const variables = {
      get slow() {
        return evaluateMetered(inner, {}, budget);
      },
    };
    const outer = parseRule("variables.slow || true");
    expect(() => evaluateMetered(outer, { variables }, budget)).toThrow("cost limit");
    expect(budget.isSpent).toBe(true);
  });
});

describe("what costs too much is refused when it is written", () => {
  let server: ApiServer;
  beforeAll(async () => {
    server = await createApiServer({ dataDir: ":memory:" });
  });
  afterAll(() => server.close());

  async function refusal(path: string, object: object): Promise<string> {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(object) };
    const response = await server.transport()(
      new Request(`http://kubernetes.internal${path}`, init),
    );
    const { message = "" } = (await response.json()) as UnknownObject & { message?: string };
    return `${response.status} ${message}`;
  }

  const rules = (...texts: string[]) => texts.map((rule) => ({ rule }));
  const definition = (schema: Schema) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "costs.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { plural: "costs", kind: "Cost" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec: schema } } },
        },
      ],
    },
  });
  const define = (schema: Schema) =>
    refusal("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(schema));
  const advice =
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

  test.each<[string, Schema]>([
    ["literal lists", { ...spec, "x-kubernetes-validations": rules(literals) }],
    [
      "a list without a bound in itself",
      { ...spec, "x-kubernetes-validations": rules("self.tags.all(a, self.tags.all(b, a != b))") },
    ],
  ])("a rule over %s", async (_, schema) => {
    const text = await define(schema);
    expect(text).toMatch(/^422 .*x-kubernetes-validations\[0\]\.rule: Forbidden: /);
    expect(text).toContain(`estimated rule cost exceeds budget by factor of`);
    expect(text).toContain(advice);
  });

  test("rules that are too much together", async () => {
    const rule = "self.tags.all(t, t.size() <= 3)";
    const many = Array.from({ length: 40 }, (_, index) => `${rule} && ${index} > -1`);
    const text = await define({ ...spec, "x-kubernetes-validations": rules(...many) });
    expect(text).toContain("estimated rule cost total for entire OpenAPIv3 schema exceeds budget");
  });

  test("a policy's expression and a webhook's condition", async () => {
    const admission = "admissionregistration.k8s.io/v1";
    const matchConstraints = {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["pods"] },
      ],
    };
    const policy = {
      apiVersion: admission,
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: "costs" },
      spec: {
        matchConstraints,
        matchConditions: [{ name: "c", expression: literals }],
        validations: [{ expression: literals }],
      },
    };
    const text = await refusal(`/apis/${admission}/validatingadmissionpolicies`, policy);
    expect(text).toContain(
      "spec.matchConditions[0].expression: Forbidden: estimated expression cost",
    );
    expect(text).toContain("spec.validations[0].expression: Forbidden: estimated expression cost");
  });

  test("and what stays within the limit is taken", async () => {
    const text = await define({
      ...spec,
      "x-kubernetes-validations": rules("self.few.all(a, self.few.all(b, a != b || a == b))"),
    });
    expect(text).toMatch(/^201/);
  });
});
