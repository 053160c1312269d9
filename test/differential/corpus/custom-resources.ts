import { functionCrd } from "@spry/function";
import { changed } from "./validation.ts";
import { type Case, apply, at, get, patch, post, put, remove, table } from "../step.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const served = (path: string) => ({ ...get(path), until: 200 });

const things = at("diff.spry.invalid/v1", "things");
const thing = (spec: unknown, metadata: object = {}) => ({
  apiVersion: "diff.spry.invalid/v1",
  kind: "Thing",
  metadata: { name: "one", ...metadata },
  spec,
});
const thingCrd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "things.diff.spry.invalid" },
  spec: {
    group: "diff.spry.invalid",
    scope: "Namespaced",
    names: { plural: "things", kind: "Thing", shortNames: ["th"], categories: ["all"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.selector",
          },
        },
        additionalPrinterColumns: [
          { name: "Size", type: "string", jsonPath: ".spec.size" },
          { name: "Replicas", type: "integer", jsonPath: ".spec.replicas" },
          { name: "Wide", type: "string", jsonPath: ".spec.text", priority: 1 },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                required: ["size"],
                properties: {
                  size: { type: "string", enum: ["small", "large"] },
                  text: {
                    type: "string",
                    default: "defaulted",
                    maxLength: 20,
                    minLength: 2,
                    pattern: "^[a-z]+$",
                  },
                  replicas: { type: "integer", minimum: 0, maximum: 10 },
                  port: { "x-kubernetes-int-or-string": true },
                  nullable: { type: "string", nullable: true },
                  set: {
                    type: "array",
                    "x-kubernetes-list-type": "set",
                    items: { type: "string" },
                    maxItems: 5,
                  },
                  map: {
                    type: "array",
                    maxItems: 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    items: {
                      type: "object",
                      required: ["key"],
                      properties: { key: { type: "string" }, value: { type: "string" } },
                    },
                  },
                  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  strings: {
                    type: "object",
                    maxProperties: 2,
                    additionalProperties: { type: "string" },
                  },
                  date: { type: "string", format: "date-time" },
                  number: { type: "number", multipleOf: 0.5 },
                  one: {
                    type: "object",
                    properties: { a: { type: "string" }, b: { type: "string" } },
                    oneOf: [{ required: ["a"] }, { required: ["b"] }],
                  },
                  any: { type: "string", anyOf: [{ maxLength: 2 }, { pattern: "^a" }] },
                  all: { type: "string", allOf: [{ maxLength: 2 }, { pattern: "^a" }] },
                  not: { type: "string", not: { pattern: "^a" } },
                  fixed: {
                    type: "string",
                    maxLength: 20,
                    "x-kubernetes-validations": [
                      { rule: "self == oldSelf", message: "fixed is fixed" },
                    ],
                  },
                },
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.replicas) || self.replicas != 7",
                    message: "seven is not allowed",
                  },
                  {
                    rule: "!has(self.replicas) || self.replicas < 9",
                    messageExpression: "'too many replicas'",
                  },
                  { rule: "!has(self.text) || self.text != 'rule'" },
                ],
              },
              status: {
                type: "object",
                properties: { replicas: { type: "integer" }, selector: { type: "string" } },
              },
            },
          },
        },
      },
    ],
  },
};
const specSchema = "spec.versions.0.schema.openAPIV3Schema.properties.spec";
const badDefinition = (path: string, value: unknown) =>
  post(`${definitions}?dryRun=All`, changed(structuredClone(thingCrd), path, value));
const lates = at("late.spry.invalid/v1", "lates");
const late = (spec: object, name = "one") => ({
  apiVersion: "late.spry.invalid/v1",
  kind: "Late",
  metadata: { name },
  spec,
});
const lateCrd = (field: string, maxLength?: number) => {
  const text = { type: "string", ...(maxLength !== undefined && { maxLength }) };
  const item = {
    type: "object",
    required: ["key"],
    properties: { key: { type: "string" }, value: text },
  };
  const list = {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["key"],
    items: item,
  };
  const spec = { type: "object", properties: { [field]: text, other: { type: "string" }, list } };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  return {
    metadata: { name: "lates.late.spry.invalid" },
    spec: {
      group: "late.spry.invalid",
      scope: "Namespaced",
      names: { plural: "lates", kind: "Late" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
};
const functions = at("serverless.kyma-project.io/v1alpha2", "functions");
const fn = (spec: unknown) => ({
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: { name: "one" },
  spec,
});
const inline = { inline: { source: "module.exports = { main() {} }" } };

export const customResources: Case[] = [
  {
    name: "life of a CustomResourceDefinition",
    steps: [
      post(definitions, thingCrd),
      served(things),
      get(`${definitions}/things.diff.spry.invalid`),
      get("/apis/diff.spry.invalid"),
      get("/apis/diff.spry.invalid/v1"),
      table(definitions + "/things.diff.spry.invalid"),
      post(things, thing({ size: "small" })),
      ...[
        {},
        { size: "medium" },
        { size: 1 },
        { size: "small", text: "UPPER" },
        { size: "small", text: "x" },
        { size: "small", text: "x".repeat(21) },
        { size: "small", replicas: -1 },
        { size: "small", replicas: 11 },
        { size: "small", replicas: 1.5 },
        { size: "small", replicas: 7 },
        { size: "small", replicas: 10 },
        { size: "small", text: "rule" },
        { size: "medium", replicas: 7 },
        { size: "small", port: 80 },
        { size: "small", port: "http" },
        { size: "small", port: true },
        { size: "small", nullable: null },
        { size: "small", text: null },
        { size: null },
        { size: "small", set: ["a", "a"] },
        { size: "small", map: [{ key: "a" }, { key: "a" }] },
        { size: "small", map: [{}] },
        { size: "small", free: { a: { b: [1] } } },
        { size: "small", unknown: 1 },
        { size: "small", strings: { a: 1 } },
        { size: "small", strings: { a: "1", b: "2", c: "3" } },
        { size: "small", date: "yesterday" },
        { size: "small", number: 0.3 },
        { size: "small", one: {} },
        { size: "small", one: { a: "1", b: "2" } },
        { size: "small", set: ["1", "2", "3", "4", "5", "6"] },
        { size: "small", any: "bcd" },
        { size: "small", all: "bcd" },
        { size: "small", all: "abc" },
        { size: "small", not: "abc" },
        "text",
        null,
        [],
      ].map((spec) => post(`${things}?dryRun=All`, thing(spec))),
      post(
        `${things}?dryRun=All&fieldValidation=Strict`,
        thing({ size: "small", unknown: 1, more: { x: 1 } }),
      ),
      post(`${things}?dryRun=All&fieldValidation=Ignore`, thing({ size: "small", unknown: 1 })),
      post(`${things}?dryRun=All`, { ...thing({ size: "small" }), status: { replicas: 5 } }),
      post(`${things}?dryRun=All`, { ...thing({ size: "small" }), kind: "Other" }),
      post(`${things}?dryRun=All`, { metadata: { name: "a" } }),
      post(`${things}?dryRun=All`, thing({ size: "small" }, { name: "Bad_Name" })),
      post(`${things}?dryRun=All`, thing({ size: "small" }, { labels: { a: 1 } })),
      post(`${things}?dryRun=All`, thing({ size: "small" }, { labels: { a: "b c" } })),
      get(things),
      table(things),
      patch("merge", `${things}/one`, { spec: { fixed: "a" } }),
      patch("merge", `${things}/one`, { spec: { fixed: "b" } }),
      patch("merge", `${things}/one`, { status: { replicas: 3 } }),
      patch("merge", `${things}/one/status`, {
        status: { replicas: 3, selector: "a=b" },
        spec: { size: "large" },
      }),
      get(`${things}/one/scale`),
      patch("merge", `${things}/one/scale`, { spec: { replicas: 3 } }),
      patch("merge", `${things}/one/scale`, { spec: { replicas: -3 } }),
      patch("merge", `${things}/one/scale`, { spec: { replicas: 30 } }),
      patch("strategic", `${things}/one`, { spec: { replicas: 1 } }),
      patch("json", `${things}/one`, [{ op: "add", path: "/spec/set", value: ["a"] }]),
      apply(
        "one",
        `${things}/one`,
        thing({ size: "small", set: ["a", "b"], map: [{ key: "k", value: "1" }] }),
      ),
      apply("two", `${things}/one`, thing({ set: ["c"], map: [{ key: "k", value: "2" }] })),
      apply("two", `${things}/one`, thing({ set: ["c"], map: [{ key: "l", value: "2" }] })),
      apply("two", `${things}/one`, thing({})),
      apply("two", `${things}/one`, thing({ unknown: 1 })),
      put(`${things}/one`, thing({ size: "small" })),
      put(
        `${things}/one`,
        thing({ size: "small" }, { resourceVersion: "{{6.metadata.resourceVersion}}" }),
      ),
      put(`${things}/one`, thing({ size: "large" }, { resourceVersion: "1" })),
      get(`${things}?fieldSelector=spec.size%3Dsmall`),
      remove(`${things}/one`),
      remove(things),
      remove(`${definitions}/things.diff.spry.invalid?dryRun=All`),
    ],
  },
  {
    name: "later limits of a CustomResourceDefinition",
    steps: [
      post(definitions, lateCrd("text")),
      served(lates),
      post(lates, late({ text: "too long", other: "a", list: [{ key: "k", value: "too long" }] })),
      patch("merge", `${definitions}/lates.late.spry.invalid`, lateCrd("text", 3)),
      { ...served(lates), settleMs: 3000 },
      post(`${lates}?dryRun=All`, late({ text: "too long" }, "two")),
      patch("merge", `${lates}/one`, { metadata: { labels: { a: "b" } } }),
      patch("merge", `${lates}/one`, { spec: { other: "b" } }),
      patch("merge", `${lates}/one`, { spec: { text: "longer still" } }),
      patch("merge", `${lates}/one`, {
        spec: {
          list: [
            { key: "j", value: "a" },
            { key: "k", value: "too long" },
          ],
        },
      }),
      patch("merge", `${lates}/one`, { spec: { list: [{ key: "k", value: "too long, too" }] } }),
      patch("merge", `${lates}/one`, { spec: { text: "abc" } }),
      remove(`${lates}/one`),
      remove(`${definitions}/lates.late.spry.invalid`),
    ],
  },
  {
    name: "definitions that are refused",
    steps: [
      badDefinition("metadata.name", "other.diff.spry.invalid"),
      badDefinition("spec.versions.0.storage", false),
      badDefinition("spec.versions.0.schema", undefined),
      badDefinition(`${specSchema}.type`, undefined),
      badDefinition(`${specSchema}.x-kubernetes-validations`, [{ rule: "self.absent" }]),
      badDefinition("spec.scope", "X"),
      badDefinition("spec.versions", []),
      badDefinition("spec.names.kind", ""),
      badDefinition(`${specSchema}.properties.text.default`, 1),
      badDefinition("spec.group", undefined),
    ],
  },
  {
    name: "rules that cannot be read",
    steps: [
      badDefinition(`${specSchema}.type`, "x"),
      badDefinition(`${specSchema}.x-kubernetes-validations`, [{ rule: "self." }]),
      badDefinition(`${specSchema}.x-kubernetes-validations`, [{ rule: "self.size ==" }]),
    ],
  },
  {
    name: "Functions",
    steps: [
      post(definitions, functionCrd()),
      served(functions),
      post(functions, fn({ runtime: "nodejs24", source: inline })),
      ...[
        {},
        { runtime: "cobol", source: inline },
        { runtime: "nodejs24", source: {} },
        { runtime: "nodejs24" },
        {
          runtime: "nodejs24",
          source: { ...inline, gitRepository: { url: "https://example.invalid/x.git" } },
        },
        { runtime: "nodejs24", source: inline, replicas: -1 },
        { runtime: "nodejs24", source: inline, replicas: "x" },
        { runtime: "nodejs24", source: inline, scaleConfig: { minReplicas: 3, maxReplicas: 1 } },
        { runtime: "nodejs24", source: inline, env: [{ name: "FUNC_HANDLER", value: "x" }] },
        { runtime: "nodejs24", source: inline, env: [{ name: "" }] },
        { runtime: "nodejs24", source: inline, labels: { "a b": "c" } },
        { runtime: "nodejs24", source: inline, repicas: 1 },
        { runtime: "nodejs24", source: { inline: { source: "" } } },
        {
          runtime: "nodejs24",
          source: inline,
          resourceConfiguration: { function: { profile: "X" } },
        },
        {
          runtime: "nodejs24",
          source: inline,
          resourceConfiguration: {
            function: { profile: "S", resources: { limits: { cpu: "1" } } },
          },
        },
        { runtime: "nodejs24", source: inline, secretMounts: [{ secretName: "x", mountPath: "" }] },
      ].flatMap((spec) => [
        post(`${functions}?dryRun=All`, fn(spec)),
        post(`${functions}?dryRun=All&fieldValidation=Strict`, fn(spec)),
      ]),
      get(functions),
      table(functions),
      get(`${functions}/one/scale`),
      patch("merge", `${functions}/one/scale`, { spec: { replicas: 2 } }),
      patch("merge", `${functions}/one/scale`, { spec: { replicas: 0 } }),
      get(`${functions}/one`),
      remove(`${functions}/one`),
    ],
  },
];
