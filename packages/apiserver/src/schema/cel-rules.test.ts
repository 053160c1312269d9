import { silentLogger } from "@spry/kube";
import { expect, test } from "vitest";
import { FieldErrors } from "../field-errors.ts";
import { type CustomVersion } from "../resources/custom-version.ts";
import { validateRules } from "./cel-rules.ts";
import { type Schema, type ValidationRule } from "./schema.ts";

const spec: Schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    cpu: { type: "string" },
    url: { type: "string" },
    at: { type: "string", format: "date-time" },
    "dashed-name": { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    items: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        properties: { name: { type: "string" }, value: { type: "integer" } },
      },
    },
    labels: { type: "object", additionalProperties: { type: "string" } },
    namespace: { type: "string" },
  },
};

function problems(rule: string | ValidationRule, value: object, old?: object): string[] {
  const rules = [typeof rule === "string" ? { rule } : rule];
  const openApiSchema: Schema = {
    type: "object",
    properties: { spec: { ...spec, "x-kubernetes-validations": rules } },
  };
  const errors = new FieldErrors();
  const custom = { openApiSchema } as unknown as CustomVersion;
  const object = (each: object) => ({ metadata: { name: "n" }, spec: each });
  validateRules(custom, object(value), old && object(old), errors, silentLogger);
  return errors.all.map(({ field, message }) => `${field}: ${message}`);
}

test.each<[string, object]>([
  ["self.count < 10 && self.name == 'a'", { count: 3, name: "a" }],
  ["self.ratio > 0.5", { ratio: 1 }],
  ["has(self.name) ? self.name.startsWith('a') : true", { count: 1 }],
  ["self.tags.all(t, t.size() <= 3) && self.tags.exists(t, t == 'b')", { tags: ["a", "b"] }],
  [
    "self.items.filter(i, i.value > 1).map(i, i.name) == ['b']",
    {
      items: [
        { name: "a", value: 1 },
        { name: "b", value: 2 },
      ],
    },
  ],
  ["self.labels.all(k, k.matches('^[a-z]+$') && self.labels[k] != '')", { labels: { a: "x" } }],
  ["'a' in self.labels && !('b' in self.labels)", { labels: { a: "x" } }],
  ["quantity(self.cpu).isLessThan(quantity('1'))", { cpu: "500m" }],
  ["quantity(self.cpu).compareTo(quantity('0.5')) == 0", { cpu: "500m" }],
  ["isQuantity(self.cpu) && !isQuantity(self.name)", { cpu: "1Gi", name: "x y" }],
  [
    "url(self.url).getHostname() == 'example.com' && url(self.url).getScheme() == 'https'",
    { url: "https://example.com:8443/x" },
  ],
  ["isURL(self.url)", { url: "/a/b" }],
  ["self.name.find('[0-9]+') == '42'", { name: "a42b" }],
  ["self.name.findAll('[0-9]') == ['1', '2']", { name: "1a2" }],
  [
    "self.tags.isSorted() && [1, 2].sum() == 3 && [3, 1].min() == 1 && self.tags.indexOf('b') == 1",
    { tags: ["a", "b"] },
  ],
  ["self.name.lowerAscii() == 'ab' && self.name.replace('A', 'x') == 'xB'", { name: "AB" }],
  ["self.name.split(',').size() == 2 && self.name.substring(0, 1) == 'a'", { name: "a,b" }],
  ["self.__dash__ == 'x' || self.dashed__dash__name == 'x'", { "dashed-name": "x" }],
  ["self.at > timestamp('2020-01-01T00:00:00Z')", { at: "2024-01-01T00:00:00Z" }],
  ["has(self.items[0].name) && !has(self.items[0].value)", { items: [{ name: "a" }] }],
  [
    "(self.items.size() > 0 ? (has(self.items[0].name) ? 1 : 0) : 0) + (self.items.size() > 1 ? (has(self.items[1].name) ? 1 : 0) : 0) == 1",
    { items: [{ name: "a" }] },
  ],
  [
    "self.items.all(i, has(self.items.filter(j, has(self.items[0].name))[0].name))",
    { items: [{ name: "a" }] },
  ],
  ["self.__namespace__ == 'x'", { namespace: "x" }],
  ["duration('1h') > duration('30m')", {}],
  ["self.?name.orValue('none') == 'none'", {}],
  ["size(self.tags) == 2 && self.tags.exists_one(t, t == 'a')", { tags: ["a", "b"] }],
])("holds: %s", (rule, value) => expect(problems(rule, value)).toEqual([]));

test.each<[ValidationRule, string]>([
  [{ rule: "self.count > 5" }, "spec: Invalid value: failed rule: self.count > 5"],
  [{ rule: "self.count > 5", message: "too few" }, "spec: Invalid value: too few"],
  [
    { rule: "self.count > 5", messageExpression: "'only ' + string(self.count)" },
    "spec: Invalid value: only 1",
  ],
  [{ rule: "false", message: "no", fieldPath: ".count" }, "spec.count: Invalid value: no"],
  [{ rule: "false", message: "no", reason: "FieldValueForbidden" }, "spec: Forbidden: no"],
  [{ rule: "self.missing == 1", message: "m" }, "spec: Invalid value: m"],
])("fails: %j", (rule, message) => expect(problems(rule, { count: 1 })).toEqual([message]));

test("transition rules wait until there is a past", () => {
  expect(problems("self.count >= oldSelf.count", { count: 1 })).toEqual([]);
  expect(problems("self.count >= oldSelf.count", { count: 1 }, { count: 2 })).toHaveLength(1);
});

test("a rule whose cost grows beyond measure is not evaluated", () => {
  const tags = Array.from({ length: 1000 }, (_, i) => String(i));
  const rule = "self.tags.all(a, self.tags.all(b, self.tags.all(c, a + b + c != '')))";
  expect(problems(rule, { tags })).toEqual([
    `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`,
  ]);
});

test.each(["matches(self.spec.url)", "find(self.spec.url) == ''"])(
  "a pattern and a text of a cost beyond that of one call end it: %s",
  (call) => {
    const rule = `self.name.${call.replace("self.spec", "self")}`;
    const short = { name: "a", url: "a".repeat(4000) };
    expect(problems(rule, short).join()).not.toContain("cost limit");
    const long = { name: "a".repeat(20_000), url: "a".repeat(4000) };
    expect(problems(rule, long).join()).toContain("actual cost limit exceeded");
  },
);
