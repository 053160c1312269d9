import { describe, expect, test } from "vitest";
import { defaultFunction, type Function, type FunctionSpec, validateFunction } from "./index.ts";

function given(
  spec: Partial<FunctionSpec> & Record<string, unknown> = {},
  name = "hello",
): Function {
  const source = { inline: { source: "module.exports = { main() {} }" } };
  return { metadata: { name, namespace: "default" }, spec: { source, ...spec } };
}

const inline = (dependencies: string) => ({ inline: { source: "x", dependencies } });
const git = (more: object = {}) => ({
  gitRepository: { url: "https://git.example/r.git", baseDir: "/", reference: "main", ...more },
});
const sourceImage = `registry.example/default/hello@sha256:${"a".repeat(64)}`;
const resources = (kind: "function" | "build", requests: object, limits: object) => ({
  resourceConfiguration: { [kind]: { resources: { requests, limits } } },
});

describe("a Function is refused with the field and the reason", () => {
  test.each<[string, Function, string, string]>([
    ["a name that no Service can have", given({}, "1st"), "metadata.name", "DNS-1035"],
    ["a name that is too long", given({}, "a".repeat(64)), "metadata.name", "DNS-1035"],
    ["a retired runtime", given({ runtime: "nodejs18" }), "spec.runtime", "use nodejs24"],
    ["a retired Python", given({ runtime: "python39" }), "spec.runtime", "use python312"],
    [
      "an unknown runtime",
      given({ runtime: "rust1" }),
      "spec.runtime",
      "cannot find runtime: rust1",
    ],
    [
      "a runtime named like a property",
      given({ runtime: "toString" }),
      "spec.runtime",
      "cannot find",
    ],
    ["no source", given({ source: {} }), "spec.source", "Use GitRepository or Inline source"],
    [
      "two sources",
      given({ source: { ...inline(""), ...git() } }),
      "spec.source",
      "Use GitRepository or Inline source",
    ],
    [
      "an image and code",
      given({ source: { ...inline(""), image: sourceImage } }),
      "spec.source",
      "Use one of inline, gitRepository and image",
    ],
    [
      "an image without digest",
      given({ source: { image: "registry.example/default/hello:1" } }),
      "spec.source.image",
      "REPOSITORY@sha256:DIGEST",
    ],
    [
      "empty code",
      given({ source: { inline: { source: "" } } }),
      "spec.source.inline.source",
      "not be empty",
    ],
    [
      "dependencies that are no object",
      given({ source: inline("lodash") }),
      "spec.source.inline.dependencies",
      "invalid source.inline.dependencies value: deps should start with '{' and end with '}'",
    ],
    [
      "more code than a ConfigMap holds",
      given({ source: { inline: { source: "x".repeat(1_048_577) } } }),
      "spec.source.inline",
      "1048577 bytes together, at most 1048576",
    ],
    [
      "a Git address that is none",
      given({ source: git({ url: "not a url" }) }),
      "spec.source.gitRepository.url",
      "source.gitRepository.URL",
    ],
    [
      "a blank folder",
      given({ source: git({ baseDir: " " }) }),
      "spec.source.gitRepository.baseDir",
      "BaseDir is required and cannot be empty",
    ],
    [
      "no reference",
      given({ source: git({ reference: undefined }) }),
      "spec.source.gitRepository.reference",
      "Reference is required and cannot be empty",
    ],
    [
      "a blank Secret name",
      given({ source: git({ auth: { type: "key", secretName: " " } }) }),
      "spec.source.gitRepository.auth.secretName",
      "SecretName is required and cannot be empty",
    ],
    [
      "a reserved variable",
      given({ env: [{ name: "FUNC_PORT" }] }),
      "spec.env[0].name",
      "FUNC_PORT",
    ],
    [
      "a variable that is no name",
      given({ env: [{ name: "A" }, { name: "2B" }] }),
      "spec.env[1].name",
      "spec.env: 2B. Err: ",
    ],
    [
      "too little cpu",
      given(resources("function", { cpu: "9m" }, {})),
      "spec.resourceConfiguration.function.resources.requests.cpu",
      "Function request cpu(9m) should be higher than minimal value (10m)",
    ],
    [
      "too little memory",
      given(resources("function", {}, { memory: "1Mi" })),
      "spec.resourceConfiguration.function.resources.limits.memory",
      "Function limits memory(1Mi) should be higher than minimal value (16Mi)",
    ],
    [
      "a build with too little",
      given(resources("build", { memory: "100Mi" }, {})),
      "spec.resourceConfiguration.build.resources.requests.memory",
      "Build request memory(100Mi) should be higher than minimal value (200Mi)",
    ],
    [
      "a limit below its request",
      given(resources("function", { cpu: "1" }, { cpu: "500m" })),
      "spec.resourceConfiguration.function.resources.limits.cpu",
      "Function limits cpu(500m) should be higher than requests cpu(1)",
    ],
    [
      "an amount that is none",
      given(resources("function", { cpu: "much" }, {})),
      "spec.resourceConfiguration.function.resources.requests.cpu",
      "is not a valid quantity",
    ],
    [
      "an unknown profile",
      given({ resourceConfiguration: { function: { profile: "XXL" } } }),
      "spec.resourceConfiguration.function.profile",
      "Invalid profile, please use one of: ['XS','S','M','L','XL']",
    ],
    [
      "a profile and resources",
      given({ resourceConfiguration: { build: { profile: "fast", resources: {} } } }),
      "spec.resourceConfiguration.build",
      "Use profile or resources",
    ],
    [
      "bounds the wrong way round",
      given({ scaleConfig: { minReplicas: 3, maxReplicas: 2 } }),
      "spec.scaleConfig",
      "minReplicas should be less than or equal maxReplicas",
    ],
    [
      "a minimum below zero",
      given({ scaleConfig: { minReplicas: -1, maxReplicas: 2 } }),
      "spec.scaleConfig.minReplicas",
      "at least 0",
    ],
    [
      "a maximum of none",
      given({ scaleConfig: { minReplicas: 0, maxReplicas: 0 } }),
      "spec.scaleConfig.maxReplicas",
      "at least 1",
    ],
    [
      "a concurrency limit out of range",
      given({ concurrency: { limit: 1001 } }),
      "spec.concurrency.limit",
      "limit should be between 1 and 1000",
    ],
    [
      "a concurrency target above its limit",
      given({ concurrency: { target: 20, limit: 10 } }),
      "spec.concurrency",
      "target should be less than or equal limit",
    ],
    [
      "a timeout of an hour and a second",
      given({ timeoutSeconds: 3601 }),
      "spec.timeoutSeconds",
      "timeoutSeconds should be between 1 and 3600",
    ],
    [
      "traffic that does not add up",
      given({ traffic: [{ latest: true, percent: 90 }] }),
      "spec.traffic",
      "should add up to 100, but add up to 90",
    ],
    [
      "traffic to a revision and the latest at once",
      given({ traffic: [{ latest: true, revision: 3, percent: 100 }] }),
      "spec.traffic[0]",
      "Use revision or latest: true",
    ],
    [
      "traffic to nothing",
      given({ traffic: [{ percent: 100 }] }),
      "spec.traffic[0]",
      "Use revision or latest: true",
    ],
    [
      "a tag twice",
      given({
        traffic: [
          { latest: true, percent: 100, tag: "new" },
          { revision: 1, tag: "new" },
        ],
      }),
      "spec.traffic[1].tag",
      "tag new is there twice",
    ],
    [
      "a tag that is not a label",
      given({ traffic: [{ latest: true, percent: 100, tag: "New!" }] }),
      "spec.traffic[0].tag",
      "not a DNS-1035 label",
    ],
    [
      "a template",
      given({ template: { labels: { a: "b" } } }),
      "spec.template",
      "Not supported: Use spec.labels",
    ],
    [
      "a Secret mounted twice",
      given({
        secretMounts: [
          { secretName: "a", mountPath: "/a" },
          { secretName: "a", mountPath: "/b" },
        ],
      }),
      "spec.secretMounts",
      "secretNames should be unique",
    ],
    [
      "a Secret that cannot be",
      given({ secretMounts: [{ secretName: "A_b", mountPath: "/a" }] }),
      "spec.secretMounts[0].secretName",
      "invalid spec.secretMounts: [",
    ],
    [
      "a label of our domain",
      given({ labels: { "serverless.kyma-project.io/x": "y" } }),
      "spec.labels[serverless.kyma-project.io/x]",
      "Labels has key starting with serverless.kyma-project.io/ which is not allowed",
    ],
    [
      "a label value that is too long",
      given({ labels: { a: "x".repeat(64) } }),
      "spec.labels[a]",
      "label value",
    ],
    [
      "an annotation of our domain",
      given({ annotations: { "serverless.kyma-project.io/x": "y" } }),
      "spec.annotations[serverless.kyma-project.io/x]",
      "Annotations has key starting with",
    ],
  ])("%s", (_, fn, path, words) => {
    const errors = validateFunction(fn);
    expect(errors.map((error) => error.path)).toContain(path);
    expect(errors.find((error) => error.path === path)?.message).toContain(words);
  });

  const shapes = [null, 1, "x", true, [], {}, [null], [1], { a: 1 }, { a: null }];
  const fields = [
    "runtime",
    "source",
    "env",
    "resourceConfiguration",
    "scaleConfig",
    "replicas",
    "template",
    "secretMounts",
    "labels",
    "annotations",
    "podSecurityContext",
  ];
  test.each(fields)("whatever has been written as %s, without an exception", (field) => {
    for (const shape of shapes) {
      const fn = given({ [field]: shape });
      expect(Array.isArray(validateFunction(defaultFunction(fn)))).toBe(true);
    }
    expect(validateFunction(given({ [field]: null }))).toMatchObject([
      { path: `spec.${field}`, message: expect.stringContaining("not null") },
    ]);
  });

  test.each<[string, object]>([
    ["spec.env", { env: { A: "b" } }],
    ["spec.env[0].name", { env: [{ value: "x" }] }],
    ["spec.env[0].value", { env: [{ name: "A", value: 1 }] }],
    ["spec.replicas", { replicas: "2" }],
    ["spec.labels[a]", { labels: { a: true } }],
    ["spec.source.inline.source", { source: { inline: {} } }],
    ["spec.source.inline.dependencies", { source: { inline: { source: "x", dependencies: {} } } }],
  ])("of a wrong type: %s", (path, spec) => {
    expect(validateFunction(given(spec as Partial<FunctionSpec>))).toMatchObject([{ path }]);
  });

  test.each([undefined, null, 1, "x", []])("with %j as its whole spec", (spec) => {
    const fn = { ...given(), spec } as unknown as Function;
    expect(validateFunction(defaultFunction(fn))).toMatchObject([{ path: "spec" }]);
  });

  test("all mistakes at once", () => {
    const fn = given({ runtime: "nodejs16", env: [{ name: "MOD_NAME" }], source: {} });
    expect(validateFunction(fn).map((error) => error.path)).toEqual([
      "spec.runtime",
      "spec.source",
      "spec.env[0].name",
    ]);
  });

  test("never with a password in the message", () => {
    const fn = given({ source: git({ url: "https://me:secret@git.example/ x" }) });
    expect(JSON.stringify(validateFunction(fn))).not.toContain("secret@");
  });
});

describe("a Function passes", () => {
  test.each<[string, Function]>([
    ["with code alone", given()],
    ["with padded dependencies", given({ source: inline(" \n{}\n ") })],
    [
      "with requirements of Python",
      given({ runtime: "python312", source: inline("requests==2.0") }),
    ],
    ["with a deprecated runtime", given({ runtime: "nodejs20" })],
    ["from Git by SSH", given({ source: git({ url: "git@git.example:me/r.git" }) })],
    [
      "with the least resources",
      given(resources("function", { cpu: "10m", memory: "16Mi" }, { cpu: "10m", memory: "16Mi" })),
    ],
    ["with amounts written as numbers", given(resources("function", { cpu: 1 }, { cpu: "1000m" }))],
    [
      "with an annotation in capitals",
      given({ annotations: { "Example.com/Key": "any text: {}" } }),
    ],
  ])("%s", (_, fn) => expect(validateFunction(fn)).toEqual([]));
});

describe("defaults", () => {
  test.each([
    ["nothing said: one", undefined, undefined, 1],
    ["said", 3, undefined, 3],
    ["none", 0, undefined, 0],
    ["below the bounds", 1, [2, 5], 2],
    ["above the bounds", 9, [2, 5], 5],
    ["within the bounds stays a scaler's decision", 4, [2, 5], 4],
    ["bounds that contradict", 4, [9, 5], 4],
  ])("replicas: %s", (_, replicas, bounds, expected) => {
    const spec = {
      ...(replicas === undefined ? {} : { replicas }),
      ...(bounds ? { scaleConfig: { minReplicas: bounds[0]!, maxReplicas: bounds[1]! } } : {}),
    };
    expect(defaultFunction(given(spec)).spec.replicas).toBe(expected);
  });

  test("the runtime is nodejs24, and a named one stays", () => {
    expect(defaultFunction(given()).spec.runtime).toBe("nodejs24");
    expect(defaultFunction(given({ runtime: "nodejs22" })).spec.runtime).toBe("nodejs22");
  });

  test("applied twice change nothing more, and never their input", () => {
    const fn = Object.freeze(given({ scaleConfig: { minReplicas: 2, maxReplicas: 3 } }));
    Object.freeze(fn.spec);
    expect(defaultFunction(defaultFunction(fn))).toEqual(defaultFunction(fn));
  });
});

test("a source can be an image", () => {
  expect(validateFunction(defaultFunction(given({ source: { image: sourceImage } })))).toEqual([]);
});
