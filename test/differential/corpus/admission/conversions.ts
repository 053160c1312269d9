import { apply, type Case, get, patch, post, put, remove, type Step, watch } from "../../step.ts";
import { type Answer, clientConfig } from "./webhook-server.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const version = (name: string, field: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  schema: {
    openAPIV3Schema: {
      type: "object",
      properties: { spec: { type: "object", properties: { [field]: { type: "integer" } } } },
    },
  },
});

const definition = (group: string, conversion: object | undefined) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `rods.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { plural: "rods", kind: "Rod" },
    ...(conversion && { conversion }),
    versions: [version("v1", "size", false), version("v2", "length", true)],
  },
});
const byWebhook = (answer: Answer) => ({
  strategy: "Webhook",
  webhook: { clientConfig: clientConfig(answer), conversionReviewVersions: ["v1"] },
});

interface Paths {
  v1: string;
  v2: string;
  rod: (version: string, spec: object, more?: object) => object;
}

function converted(
  name: string,
  group: string,
  answer: Answer | undefined,
  steps: (paths: Paths) => Step[],
): Case {
  const at = (each: string) => `/apis/${group}/${each}/namespaces/$ns/rods`;
  const rod = (each: string, spec: object, more: object = {}) => ({
    apiVersion: `${group}/${each}`,
    kind: "Rod",
    metadata: { name: "one", ...more },
    spec,
  });
  return {
    name: `conversion ${name} of a CustomResourceDefinition`,
    steps: [
      post(definitions, definition(group, answer && byWebhook(answer))),
      { ...get(`${at("v1")}/absent`), settleMs: 3000 },
      ...steps({ v1: at("v1"), v2: at("v2"), rod }),
    ],
  };
}

const broken: [string, object][] = [
  ["strategy", { strategy: "X" }],
  ["no webhook", { strategy: "Webhook" }],
  ["no versions", { strategy: "Webhook", webhook: { clientConfig: { url: "https://a/" } } }],
  [
    "versions",
    {
      strategy: "Webhook",
      webhook: { clientConfig: { url: "https://a/" }, conversionReviewVersions: ["v9"] },
    },
  ],
  [
    "url",
    {
      strategy: "Webhook",
      webhook: { clientConfig: { url: "http://a/" }, conversionReviewVersions: ["v1"] },
    },
  ],
  [
    "webhook for nothing",
    {
      strategy: "None",
      webhook: { clientConfig: { url: "https://a/" }, conversionReviewVersions: ["v1"] },
    },
  ],
];
const failures: [string, string, Answer][] = [
  [
    "that fails",
    "fails",
    { response: { result: { status: "Failure", message: "cannot convert" } } },
  ],
  ["that fails silently", "silent", { response: { result: { status: "Failure" } } }],
  ["that loses objects", "loses", { response: { convertedObjects: [] } }],
  ["that answers another uid", "uid", { response: { uid: "x" } }],
  ["that renames", "renames", { raw: { name: "other" } }],
  ["that moves", "moves", { raw: { namespace: "other" } }],
];

export const conversions: Case[] = [
  converted("by a webhook", "web.spry.invalid", {}, ({ v1, v2, rod }) => [
    post(v1, rod("v1", { size: 3 }, { labels: { a: "b" } })),
    get(`${v1}/one`),
    get(`${v2}/one`),
    patch("merge", `${v1}/one`, { spec: { size: 4 } }),
    put(
      `${v2}/one`,
      rod("v2", { length: 5 }, { resourceVersion: "{{5.metadata.resourceVersion}}" }),
    ),
    post(v2, rod("v2", { length: 7 }, { name: "two" })),
    get(v1),
    get(v2),
    watch(`${v1}?watch=true&timeoutSeconds=2`, 2),
    apply("me", `${v1}/three`, rod("v1", { size: 9 }, { name: "three" })),
    post(`${v1}?dryRun=All`, rod("v1", { size: 9 }, { name: "four" })),
    post(v1, rod("v1", { size: "wrong" }, { name: "five" })),
    remove(`${v1}/one`),
  ]),
  converted("by nothing", "none.spry.invalid", undefined, ({ v1, v2, rod }) => [
    post(v1, rod("v1", { size: 3 })),
    get(`${v1}/one`),
    get(`${v2}/one`),
    remove(`${v2}/one`),
  ]),
  ...failures.map(([name, group, answer]) =>
    converted(`by a webhook ${name}`, `${group}.spry.invalid`, answer, ({ v1, v2, rod }) => [
      post(v1, rod("v1", { size: 3 })),
      post(v2, rod("v2", { length: 3 })),
      get(`${v2}/one`),
      get(`${v1}/one`),
    ]),
  ),
  ...broken.map(([name, conversion], index): Case => ({
    name: `conversion (${name}) of a CustomResourceDefinition`,
    steps: [post(definitions, definition(`broken${index}.spry.invalid`, conversion))],
  })),
];
