/** What a Serverless object does, on a real API server in memory. */
import { createApiServer } from "@spry/apiserver";
import { functionCrd, functions } from "@spry/function";
import { KubeClient, resources, type Secret } from "@spry/kube";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from "vitest";
import { settings } from "../testing/objects.ts";
import { type Configuration, configurationOf, durationMs } from "./configuration.ts";
import { serverlessCrd } from "./crd.ts";
import { Remarks } from "./remarks.ts";
import { startServerlessController, watchConfiguration } from "./start.ts";
import { deletionHook, type Serverless, serverlesses, type ServerlessSpec } from "./types.ts";

const base = settings;
const namespace = "kyma-system";
const login = { username: "u", password: "p" };
const logins = { namespace: () => login, build: () => login };
const registry = { pushAddress: "push:5000", pullAddress: "pull", logins };
const patience = { interval: 10 };

describe("a spec becomes the controller's configuration", () => {
  test.each<[ServerlessSpec, object]>([
    [{}, {}],
    [{ targetCPUUtilizationPercentage: "" }, {}],
    [{ targetCPUUtilizationPercentage: "70" }, { targetCpuUtilization: 70 }],
    [{ functionBuildMaxSimultaneousJobs: "3" }, { maxSimultaneousBuilds: 3 }],
    [{ functionHistoryLimit: "25" }, { historyLimit: 25 }],
    [
      { defaultScaleConfig: { minReplicas: 0, maxReplicas: 5 } },
      { defaultScaleConfig: { minReplicas: 0, maxReplicas: 5 } },
    ],
    [{ functionRequeueDuration: "1m30s" }, { gitCheckIntervalSeconds: 90 }],
    [{ defaultRuntimePodPreset: "XL" }, { defaultFunctionPreset: "XL" }],
    [{ defaultBuildJobPreset: "fast" }, { defaultBuildPreset: "fast" }],
    [{ tracing: { endpoint: "http://otel:4318" } }, { traceCollectorEndpoint: "http://otel:4318" }],
    [{ eventing: { endpoint: "http://events" } }, { publisherProxyAddress: "http://events" }],
    [
      { gitAllowedAddresses: ["git.internal", "10.0.0.0/8", "fd00::/8", "127.0.0.1"] },
      { gitAllowedAddresses: ["git.internal", "10.0.0.0/8", "fd00::/8", "127.0.0.1"] },
    ],
    [
      { functionBuildExecutorArgs: "--insecure,--insecure-registry=registry.example:5000" },
      { plainRegistries: ["registry.example:5000"] },
    ],
  ])("%j", (spec, change) => {
    const result = configurationOf(base, spec);
    expect("configuration" in result && result.configuration.config).toEqual({
      ...base,
      ...change,
    });
  });

  test.each<[ServerlessSpec, string]>([
    [{ targetCPUUtilizationPercentage: "0" }, "spec.targetCPUUtilizationPercentage"],
    [{ targetCPUUtilizationPercentage: "1e1" }, "spec.targetCPUUtilizationPercentage"],
    [{ functionBuildMaxSimultaneousJobs: "-1" }, "spec.functionBuildMaxSimultaneousJobs"],
    [{ eventing: { nats: { servers: [] } } }, "spec.eventing.nats.servers: at least one"],
    [{ eventing: { nats: { servers: ["http://n:4222"] } } }, "spec.eventing.nats.servers[0]"],
    [
      { eventing: { nats: { servers: ["nats://n", "nats://me:secret@n"] } } },
      "spec.eventing.nats.servers[1]: it has credentials",
    ],
    [
      { eventing: { nats: { servers: ["nats://n"], secretName: "A B" } } },
      "spec.eventing.nats.secretName",
    ],
    [
      { eventing: { nats: { servers: ["nats://n"], replicas: 2 } } },
      "spec.eventing.nats.replicas: 2 is not 1, 3 or 5",
    ],
    [{ functionHistoryLimit: "0" }, "spec.functionHistoryLimit"],
    [{ functionHistoryLimit: "101" }, "spec.functionHistoryLimit"],
    [{ defaultScaleConfig: { minReplicas: 0, maxReplicas: 0 } }, "spec.defaultScaleConfig"],
    [{ defaultScaleConfig: { minReplicas: -1, maxReplicas: 1 } }, "spec.defaultScaleConfig"],
    [{ defaultScaleConfig: { minReplicas: 3, maxReplicas: 2 } }, "spec.defaultScaleConfig"],
    [{ functionRequeueDuration: "5" }, "spec.functionRequeueDuration"],
    [{ defaultRuntimePodPreset: "XXL" }, "spec.defaultRuntimePodPreset"],
    [{ logLevel: "loud" }, "spec.logLevel"],
    [{ logFormat: "xml" }, "spec.logFormat"],
    [{ tracing: { endpoint: "otel" } }, "spec.tracing.endpoint"],
    [{ gitAllowedAddresses: ["a", "10.0.0.0/33"] }, 'spec.gitAllowedAddresses[1]: "10.0.0.0/33"'],
    [{ gitAllowedAddresses: ["http://git"] }, "spec.gitAllowedAddresses[0]"],
    [{ gitAllowedAddresses: ["127.1"] }, "spec.gitAllowedAddresses[0]"],
    [{ functionBuildExecutorArgs: "--target=x" }, 'unknown argument "--target=x"'],
    [{ functionBuildExecutorArgs: "--insecure-registry=$(X)" }, "unknown argument"],
    [{ functionBuildExecutorArgs: "--cache,".repeat(65) }, "more than 64 arguments"],
  ])("%j is refused, and says what is wrong", (spec, field) => {
    const result = configurationOf(base, spec);
    expect("errors" in result && result.errors).toEqual([expect.stringContaining(field)]);
  });

  test.each([
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    ["500ms", undefined],
    ["5", undefined],
    ["-5m", undefined],
    ["", undefined],
  ])("%s is %s ms", (text, expected) => expect(durationMs(text)).toBe(expected));
});

describe("a cluster with Serverless objects", () => {
  let api: Awaited<ReturnType<typeof createApiServer>>;
  let client: KubeClient;
  let stop: AbortController;
  let ended: Promise<void>;
  let remarks: Remarks;

  beforeAll(async () => {
    api = await createApiServer({ dataDir: ":memory:" });
    client = new KubeClient(api.transport(), { fieldManager: "test" });
    for (const each of [functionCrd(), serverlessCrd()])
      await client.apply(resources.customResourceDefinitions, each);
    for (const name of [namespace, "shop"])
      await client.apply(resources.namespaces, { metadata: { name } });
  });
  afterAll(() => api.close());
  function start(): void {
    stop = new AbortController();
    const signal = stop.signal;
    remarks = new Remarks();
    const more = { internalRegistry: registry, remarks };
    ended = startServerlessController({ client, config: base, ...more, signal });
  }
  beforeEach(start);
  afterEach(async () => {
    stop.abort();
    await ended;
    const { items } = await client.list(serverlesses);
    for (const { metadata } of items) {
      const target = { namespace: metadata.namespace, name: metadata.name ?? "" };
      await client.delete(serverlesses, target);
      const freed = { metadata: { finalizers: [] } };
      if (metadata.finalizers) await client.patch(serverlesses, target, freed);
    }
  });

  const create = (name: string, spec: ServerlessSpec = {}, where = namespace) =>
    client.create<Serverless>(serverlesses, { metadata: { name, namespace: where }, spec });
  const get = (name: string) => client.get(serverlesses, { namespace, name });
  const state = async (name: string) => {
    const { status } = await get(name);
    const last = status?.conditions?.at(-1);
    const verdict = last && `${last.type}=${last.status}/${last.reason}`;
    return `${status?.state} ${status?.served} ${status?.dockerRegistry} ${verdict}`;
  };
  const registrySecret = async () => {
    const target = { namespace, name: "serverless-registry-config-default" };
    const { data = {} } = await client.get<Secret>(resources.secrets, target);
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
    );
  };

  test("one object is served, with its hook, and the base objects are there", async () => {
    await create("default", { dockerRegistry: { enableInternal: true } });
    await expect
      .poll(() => state("default"), patience)
      .toBe("Ready True internal Installed=True/Installed");
    expect((await get("default")).metadata.finalizers).toEqual([deletionHook]);
    expect(await registrySecret()).toMatchObject({ isInternal: "true", pullRegAddr: "pull" });
    const account = await client.get(resources.serviceAccounts, {
      namespace,
      name: "serverless-function",
    });
    expect(account.automountServiceAccountToken).toBe(false);
  });

  test("a second object waits, and takes over when the first is gone", async () => {
    await create("first");
    await expect.poll(() => state("first"), patience).toMatch(/^Ready True/);
    await create("second");
    await expect
      .poll(() => state("second"), patience)
      .toBe("Warning False undefined Configured=False/ServerlessDuplicated");
    await client.delete(serverlesses, { namespace, name: "first" });
    await expect.poll(() => state("second"), patience).toMatch(/^Ready True internal/);
  });

  test("an object outside the platform's namespace has no effect, and says where it would", async () => {
    const used: (string | undefined)[] = [];
    const onChange = ({ config }: Configuration) => void used.push(config.traceCollectorEndpoint);
    void watchConfiguration({ client, config: base, onChange, signal: stop.signal });
    await create("theirs", { tracing: { endpoint: "http://evil" } }, "shop");
    const theirs = async () =>
      (await client.get(serverlesses, { namespace: "shop", name: "theirs" })).status;
    await expect.poll(async () => (await theirs())?.served, patience).toBe("False");
    expect(await theirs()).toMatchObject({
      state: "Warning",
      conditions: [
        {
          type: "Configured",
          status: "False",
          reason: "ConfigurationErr",
          message:
            "a Serverless object takes effect only in the namespace kyma-system, where the platform's administrators configure it: create it there",
        },
      ],
    });
    // Neither its age nor what its status has said so far keeps the administrator's from taking effect.
    const stored = await client.get(serverlesses, { namespace: "shop", name: "theirs" });
    await client.update(
      serverlesses,
      { ...stored, status: { served: "True" } },
      { subresource: "status" },
    );
    await create("default", { tracing: { endpoint: "http://otel" } });
    await expect.poll(() => state("default"), patience).toMatch(/^Ready True internal/);
    expect((await get("default")).status?.tracingEndpoint).toBe("http://otel");
    await expect.poll(async () => (await theirs())?.served, patience).toBe("False");
    await expect.poll(() => used.at(-1), patience).toBe("http://otel");
    expect(used).not.toContain("http://evil");
    await client.delete(serverlesses, { namespace: "shop", name: "theirs" });
    const left = async () => (await client.list(serverlesses, { namespace: "shop" })).items.length;
    await expect.poll(left, patience).toBe(0);
  });

  const fn = (name: string) => ({
    metadata: { name, namespace: "shop" },
    spec: { runtime: "nodejs24", source: { inline: { source: "x" } } },
  });

  test.each<[string, ServerlessSpec]>([
    ["a registry that is missing", { dockerRegistry: { enableInternal: false } }],
    ["a value that cannot be used", { logLevel: "loud" }],
  ])("Functions are reconciled by a controller that starts under %s", async (_, spec) => {
    stop.abort();
    await ended;
    await create("default", spec);
    start();
    await expect.poll(() => state("default"), patience).toMatch(/^Error True .*ConfigurationErr$/);
    await client.create(functions, fn("under"));
    const target = { namespace: "shop", name: "under" };
    const observed = async () => (await client.get(functions, target)).status?.observedGeneration;
    await expect.poll(observed, { ...patience, timeout: 5_000 }).toBe(1);
    await client.delete(functions, target);
  });

  test("… and under an object whose deletion waits", async () => {
    await create("default");
    await expect.poll(() => state("default"), patience).toMatch(/^Ready/);
    await client.create(functions, fn("first"));
    await client.delete(serverlesses, { namespace, name: "default" });
    await expect.poll(() => state("default"), patience).toMatch(/DeletionErr$/);
    stop.abort();
    await ended;
    start();
    await client.create(functions, fn("under"));
    const target = { namespace: "shop", name: "under" };
    const observed = async () => (await client.get(functions, target)).status?.observedGeneration;
    await expect.poll(observed, { ...patience, timeout: 5_000 }).toBe(1);
    for (const name of ["first", "under"]) await client.delete(functions, { ...target, name });
  });

  test("an external registry is taken from the Secret that is named", async () => {
    await create("default", { dockerRegistry: { enableInternal: false, secretName: "mine" } });
    await expect.poll(() => state("default"), patience).toMatch(/^Error True .*ConfigurationErr$/);
    const message = (await get("default")).status?.conditions?.[0]?.message;
    expect(message).toBe("spec.dockerRegistry: Secret kyma-system/mine not found");
    const encode = (text: string) => Buffer.from(text).toString("base64");
    const data = {
      username: encode("me"),
      password: encode("secret"),
      serverAddress: encode("https://registry.example"),
      registryAddress: encode("registry.example/team"),
      "ca.crt": encode("a certificate"),
    };
    await client.create(resources.secrets, { metadata: { namespace, name: "mine" }, data });
    // Another text wakes the controller, which otherwise looks again after half a minute.
    await client.patch(
      serverlesses,
      { namespace, name: "default" },
      { spec: { logLevel: "debug" } },
    );
    await expect
      .poll(() => state("default"), patience)
      .toMatch(/^Ready True registry.example\/team/);
    const secret = await registrySecret();
    expect(secret).toMatchObject({
      isInternal: "false",
      registryAddress: "registry.example/team",
      "ca.crt": "a certificate",
    });
    const { auths } = JSON.parse(secret[".dockerconfigjson"] ?? "{}") as { auths: object };
    expect(Object.keys(auths)).toContain("https://registry.example");
  });

  test("what is accepted and means nothing is said", async () => {
    // What charts of the original set.
    const functionBuildExecutorArgs =
      "--insecure,--skip-tls-verify,--skip-unused-stages,--log-format=text,--cache=true,--use-new-run,--compressed-caching=false";
    await create("default", { functionBuildExecutorArgs, enableNetworkPolicies: false });
    await expect.poll(() => state("default"), patience).toMatch(/^Ready True/);
    const { status } = await get("default");
    const message = status?.conditions?.[0]?.message;
    expect(message).toContain("functionBuildExecutorArgs: --insecure --skip-tls-verify");
    expect(message).toContain("enableNetworkPolicies is deprecated");
    expect(status).toMatchObject({ functionBuildExecutorArgs, networkPoliciesEnabled: "True" });
  });

  test("what other parts have to say is said, for as long as it holds", async () => {
    await create("main");
    const said = async () => {
      const { status } = await get("main");
      return status?.conditions?.find(({ type }) => type === "Configured")?.message;
    };
    await expect.poll(said, patience).toBe("Configuration ready");
    remarks.set("serving", "another installation serves");
    await expect.poll(said, patience).toBe("Configuration ready; another installation serves");
    remarks.set("serving", undefined);
    await expect.poll(said, patience).toBe("Configuration ready");
  });

  test("both registries at once is a warning", async () => {
    await create("default", { dockerRegistry: { enableInternal: true, secretName: "mine" } });
    await expect.poll(() => state("default"), patience).toMatch(/^Warning True internal/);
  });

  test("a Secret that chooses another registry for all is reported, with its consequences", async () => {
    await create("default", { dockerRegistry: { enableInternal: true } });
    await expect.poll(() => state("default"), patience).toMatch(/^Ready True internal/);
    const chosen = { namespace, name: "serverless-registry-config" };
    const registryAddress = Buffer.from("other.example/team").toString("base64");
    await client.create(resources.secrets, {
      metadata: { ...chosen, labels: { "serverless.kyma-project.io/config": "credentials" } },
      data: { registryAddress },
    });
    await expect
      .poll(() => state("default"), patience)
      .toMatch(/^Warning True other.example\/team/);
    expect((await get("default")).status?.conditions?.[0]?.message).toBe(
      "Secret kyma-system/serverless-registry-config chooses the registry other.example/team for all namespaces, " +
        "and spec.dockerRegistry the internal registry: name that Secret there, or delete it",
    );
    await client.delete(resources.secrets, chosen);
    await expect.poll(() => state("default"), patience).toMatch(/^Ready True internal/);
  });

  test("deletion waits for the Functions", async () => {
    await create("default");
    await expect.poll(() => state("default"), patience).toMatch(/^Ready/);
    const fn = {
      metadata: { name: "fn", namespace },
      spec: { runtime: "nodejs24", source: { inline: { source: "x" } } },
    };
    await client.create(functions, fn);
    await client.delete(serverlesses, { namespace, name: "default" });
    await expect
      .poll(() => state("default"), patience)
      .toMatch(/^Warning True internal Deleted=False\/DeletionErr$/);
    expect((await get("default")).status?.conditions?.at(-1)?.message).toContain("kyma-system/fn");
    await client.delete(functions, { namespace, name: "fn" });
    const left = async () => (await client.list(serverlesses)).items.length;
    await expect.poll(left, { ...patience, timeout: 15_000 }).toBe(0);
  });
});
