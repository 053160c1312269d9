import { describe, expect, test } from "vitest";
import {
  boundedName,
  buildKey,
  defaultPresetsForNodes,
  environmentOf,
  findRuntime,
  type Function,
  functionCrd,
  type FunctionSpec,
  labelsOf,
  names,
  podLabelsOf,
  podSelectorOf,
  presets,
  resolveResources,
  retiredRuntimes,
  runtimes,
} from "./index.ts";

function given(spec: Partial<FunctionSpec> = {}, uid = "u-1"): Function {
  const source = { inline: { source: "code" } };
  return { metadata: { name: "hello", namespace: "shop", uid }, spec: { source, ...spec } };
}

describe("the build key", () => {
  const key = buildKey(given());

  test.each<[string, Function]>([
    ["who the Function is", given({}, "u-2")],
    ["its name", { ...given(), metadata: { name: "other", namespace: "else", uid: "u" } }],
    ["its variables", given({ env: [{ name: "A", value: "b" }] })],
    [
      "its resources and replicas",
      given({ replicas: 7, resourceConfiguration: { function: { profile: "XS" } } }),
    ],
    ["the default runtime by name", given({ runtime: "nodejs24" })],
    [
      "white space around dependencies",
      given({ source: { inline: { source: "code", dependencies: " {} \n" } } }),
    ],
  ])("does not depend on %s", (_, fn) => expect(buildKey(fn)).toBe(key));

  test.each<[string, Function]>([
    ["the code", given({ source: { inline: { source: "code " } } })],
    ["the dependencies", given({ source: { inline: { source: "code", dependencies: "{ }" } } })],
    ["the runtime", given({ runtime: "nodejs22" })],
    ["the base image", given({ runtimeImageOverride: "example/base:1" })],
  ])("depends on %s", (_, fn) => expect(buildKey(fn)).not.toBe(key));

  test("tells code and dependencies apart", () => {
    const of = (source: string, dependencies: string) =>
      buildKey(given({ source: { inline: { source, dependencies } } }));
    expect(of("a", '{"b"}')).not.toBe(of('a{"b"}', ""));
  });

  test("is another for each demand of a build, and the first one without", () => {
    const demanded = (rebuild: string) => {
      const fn = given();
      const annotations = { "serverless.kyma-project.io/rebuild": rebuild };
      return buildKey({ ...fn, metadata: { ...fn.metadata, annotations } });
    };
    expect(new Set([key, demanded("1"), demanded("2")]).size).toBe(3);
    expect(demanded("")).toBe(key);
  });

  test("of a Git source follows commit and folder", () => {
    const fn = (baseDir: string) =>
      given({ source: { gitRepository: { url: "u", baseDir, reference: "main" } } });
    expect(buildKey(fn("a"), "c1")).toBe(buildKey(fn("a"), "c1"));
    expect(buildKey(fn("a"), "c1")).not.toBe(buildKey(fn("a"), "c2"));
    expect(buildKey(fn("a"), "c1")).not.toBe(buildKey(fn("b"), "c1"));
    const ofImage = (name: string, digit: string) =>
      buildKey(given({ source: { image: `${name}@sha256:${digit.repeat(64)}` } }));
    expect(ofImage("here/a", "1")).toBe(ofImage("there/a", "1"));
    expect(ofImage("here/a", "1")).not.toBe(ofImage("here/a", "2"));
  });
});

describe("names", () => {
  test.each([1, 10, 45, 46, 47, 62, 63])("of a Function with %i letters fit", (length) => {
    const job = names.buildJob("f".repeat(length), "0123456789abcdef");
    expect(job.length).toBeLessThanOrEqual(63);
    expect(job).toMatch(/^[a-z]([-a-z0-9]*[a-z0-9])?-build-0123456789$/);
  });

  test.each([
    ["shop", "api", "shop-api"],
    // `a-b-c` would be both.
    ["a", "b-c", "a.b-c"],
    ["a-b", "c", "a-b.c"],
  ])("of repositories in an external registry are of one Function only: %s/%s", (...of) => {
    const [namespace, functionName, repository] = of;
    expect(names.externalRepository(namespace, functionName)).toBe(repository);
  });

  test("that are cut stay apart", () => {
    const long = "f".repeat(60);
    expect(boundedName(`${long}-a`, "-build-1")).not.toBe(boundedName(`${long}-b`, "-build-1"));
  });

  test.each(["creds", "my.creds", "a".repeat(253), `${"a".repeat(62)}.b`])(
    "volume for Secret %s",
    (secret) => {
      expect(names.secretVolume(secret)).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    },
  );
});

describe("labels", () => {
  test("the selector has exactly four, all of them on the Pods, whatever the user says", () => {
    const fn = given({ labels: { app: "x", "app.kubernetes.io/name": "mine" } });
    expect(Object.keys(podSelectorOf(fn))).toHaveLength(4);
    expect(podLabelsOf(fn)).toMatchObject({
      ...podSelectorOf(fn),
      app: "x",
      "app.kubernetes.io/name": "hello",
    });
    expect(labelsOf(fn)).toEqual({
      "serverless.kyma-project.io/function-name": "hello",
      "serverless.kyma-project.io/managed-by": "function-controller",
      "serverless.kyma-project.io/uuid": "u-1",
    });
  });
});

describe("the environment", () => {
  const settings = {
    traceCollectorEndpoint: "",
    publisherProxyAddress: "http://publisher/publish",
  };
  const valuesOf = (fn: Function) =>
    Object.fromEntries(environmentOf(fn, settings).map((env) => [env.name, env.value]));

  test("is the user's, then ours", () => {
    const fn = given({ env: [{ name: "A", value: "1" }] });
    expect(environmentOf(fn, settings).map((env) => env.name)).toEqual([
      "A",
      "FUNC_RUNTIME",
      "FUNC_NAME",
      "SERVICE_NAMESPACE",
      "TRACE_COLLECTOR_ENDPOINT",
      "PUBLISHER_PROXY_ADDRESS",
      "FUNC_HANDLER",
      "MOD_NAME",
      "FUNC_PORT",
      "PORT",
      "NODE_ENV",
    ]);
  });

  test.each([
    ["Node.js", {}, {}, { PORT: "8080", NODE_ENV: "production" }],
    ["Python", { runtime: "python312" }, {}, { PORT: "8080", NODE_ENV: undefined }],
    [
      "a user who has other values",
      {
        env: [
          { name: "PORT", value: "1" },
          { name: "NODE_ENV", value: "test" },
        ],
      },
      {},
      { PORT: "1", NODE_ENV: "test" },
    ],
    ["development", {}, { isDevelopment: true }, { PORT: undefined, NODE_ENV: undefined }],
  ])("says that %s is in production", (_name, spec, more, expected) => {
    const all = environmentOf(given(spec), { ...settings, ...more });
    const valueOf = (name: string) => all.find((each) => each.name === name)?.value;
    expect({ PORT: valueOf("PORT"), NODE_ENV: valueOf("NODE_ENV") }).toEqual(expected);
  });

  test("names everything once: ours wins, of the user's the last", () => {
    const fn = given({
      env: [
        { name: "A", value: "1" },
        { name: "PUBLISHER_PROXY_ADDRESS", value: "mine" },
        { name: "A", value: "2" },
      ],
    });
    const all = environmentOf(fn, settings).map((env) => env.name);
    expect(new Set(all).size).toBe(all.length);
    expect(valuesOf(fn)).toMatchObject({
      A: "2",
      PUBLISHER_PROXY_ADDRESS: "http://publisher/publish",
    });
  });

  const own = { name: "NODE_OPTIONS", value: "--no-warnings" };
  test.each([
    ["by the limit", {}, "128Mi", "--max-old-space-size=76 --max-semi-space-size=4"],
    ["by a small limit", {}, "20Mi", "--max-old-space-size=12 --max-semi-space-size=1"],
    ["by a limit in between", {}, "500Mi", "--max-old-space-size=300 --max-semi-space-size=8"],
    ["by a limit in bytes", {}, "1073741824", "--max-old-space-size=614 --max-semi-space-size=16"],
    [
      "before options of the user's",
      { env: [own] },
      "1Gi",
      "--max-old-space-size=614 --max-semi-space-size=16 --no-warnings",
    ],
    ["but not without a limit", {}, undefined, undefined],
    ["nor for Python", { runtime: "python312" }, "1Gi", undefined],
  ])("sizes the heap %s", (_name, spec, memoryLimit, expected) => {
    const env = environmentOf(given(spec), { ...settings, memoryLimit });
    expect(env.find(({ name }) => name === "NODE_OPTIONS")?.value).toBe(expected);
  });

  test("leaves what users may override to them", () => {
    expect(valuesOf(given())).not.toHaveProperty("FUNC_TIMEOUT");
    expect(valuesOf(given({ env: [{ name: "FUNC_TIMEOUT", value: "5" }] }))).toHaveProperty(
      "FUNC_TIMEOUT",
      "5",
    );
  });

  test("knows Python's paths and the newer names", () => {
    expect(valuesOf(given({ runtime: "python312" }))["PYTHONPATH"]).toContain(
      "python3.12/site-packages",
    );
    expect(valuesOf(given({ runtime: "nodejs26" }))["HANDLER_FUNC_NAME"]).toBe("main");
  });

  test.each(["nodejs26", "python314"])(
    "leaves the handler that the user has named to %s",
    (runtime) => {
      const env = [
        { name: "HANDLER_FUNC_NAME", value: "run" },
        { name: "HANDLER_MOD_NAME", value: "orders" },
      ];
      expect(valuesOf(given({ runtime, env }))).toMatchObject({
        HANDLER_FUNC_NAME: "run",
        HANDLER_MOD_NAME: "orders",
        FUNC_HANDLER: "main",
      });
    },
  );
});

describe("presets", () => {
  test("a profile, own resources, or the default", () => {
    expect(resolveResources("function", { profile: "XS" }, "L")).toEqual({
      profile: "XS",
      resources: presets.function.XS,
    });
    const resources = { limits: { cpu: "1" } };
    expect(resolveResources("function", { resources }, "L")).toEqual({
      profile: "custom",
      resources,
    });
    expect(resolveResources("build", undefined, "normal").resources.limits?.["cpu"]).toBe("1100m");
    expect(resolveResources("function", { profile: "constructor" }, "L").profile).toBe("L");
  });

  test.each([
    [1, "XS", "slow"],
    [2, "XS", "slow"],
    [3, "L", "normal"],
  ])("on %i nodes", (nodes, fn, build) => {
    expect(defaultPresetsForNodes(nodes)).toEqual({ function: fn, build });
  });
});

describe("runtimes", () => {
  test("every successor exists and is not deprecated itself", () => {
    const successors = [
      ...Object.values(retiredRuntimes),
      ...runtimes.flatMap((runtime) => runtime.successor ?? []),
    ];
    expect(successors.filter((name) => findRuntime(name)?.deprecated !== false)).toEqual([]);
  });

  test("none is both there and retired", () => {
    expect(runtimes.filter((runtime) => runtime.name in retiredRuntimes)).toEqual([]);
  });
});

describe("the CustomResourceDefinition", () => {
  const crd = functionCrd();
  const schema = crd.spec.versions[0]?.schema?.openAPIV3Schema;

  test("is structural: every node has a type or is an int-or-string", () => {
    const untyped: string[] = [];
    const visit = (node: Record<string, unknown>, path: string) => {
      if (!node["type"] && !node["x-kubernetes-int-or-string"]) untyped.push(path);
      for (const [key, child] of Object.entries(node["properties"] ?? {}))
        visit(child as Record<string, unknown>, `${path}.${key}`);
      for (const key of ["items", "additionalProperties"])
        if (node[key]) visit(node[key] as Record<string, unknown>, `${path}.${key}`);
    };
    visit(schema as unknown as Record<string, unknown>, "");
    expect(untyped).toEqual([]);
  });

  test("has the contract's columns, subresources and short names", () => {
    expect(crd.spec.versions[0]?.additionalPrinterColumns?.map((column) => column.name)).toEqual([
      "Configured",
      "Built",
      "Running",
      "Runtime",
      "Version",
      "Age",
      "Cold Start",
    ]);
    expect(crd.spec.versions[0]?.subresources?.scale?.labelSelectorPath).toBe(
      ".status.podSelector",
    );
    expect(crd.spec.names).toMatchObject({
      shortNames: ["fn", "fns"],
      categories: ["kyma-serverless", "all"],
    });
  });

  test("has the contract's rules, word by word", () => {
    const messages = [...JSON.stringify(schema).matchAll(/"message":"((?:[^"\\]|\\.)*)"/g)].map(
      (match) => match[1],
    );
    for (const message of [
      "Use GitRepository or Inline source",
      "SecretName is required and cannot be empty",
      "BaseDir is required and cannot be empty",
      "Reference is required and cannot be empty",
      "Following envs are reserved and cannot be used: ['FUNC_RUNTIME','FUNC_HANDLER','FUNC_PORT','MOD_NAME','NODE_PATH','PYTHONPATH']",
      "Use profile or resources",
      "Invalid profile, please use one of: ['local-dev','slow','normal','fast']",
      "Invalid profile, please use one of: ['XS','S','M','L','XL']",
      "minReplicas should be less than or equal maxReplicas",
      "Not supported: Use spec.labels and spec.annotations to label and/or annotate Function's Pods.",
      "Labels has key starting with serverless.kyma-project.io/ which is not allowed",
      "Label value cannot be longer than 63",
      "Annotations has key starting with serverless.kyma-project.io/ which is not allowed",
    ])
      expect(messages).toContain(message);
  });

  test("lets a Function leave its runtime out", () => {
    expect(schema?.properties?.["spec"]?.required).toEqual(["source"]);
  });
});
