/** A Function's journeys, through the API server's front door. */
import { functions, type FunctionSpec } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const source = (code: string) => ({ source: { inline: { source: code } } });
const imageOf = async (name: string) =>
  (await platform.deployment(name)).spec?.template.spec?.containers[0]?.image;

describe("a new Function", () => {
  test("becomes a ConfigMap, a Job, a Deployment and a Service, and runs", async () => {
    await platform.apply("hello");
    await platform.condition(
      "hello",
      "ConfigurationReady",
      "ConfigMapCreated",
      "ConfigMap hello created",
    );
    const job = await platform.finishBuild("hello");
    expect(job.metadata.name).toMatch(/^hello-build-[0-9a-f]{10}$/);
    await platform.condition(
      "hello",
      "BuildReady",
      "JobFinished",
      `Job ${job.metadata.name} finished`,
    );
    await platform.condition("hello", "Running", "DeploymentCreated");
    expect(await imageOf("hello")).toBe(`pull.example/shop-hello@sha256:${"1".repeat(64)}`);
    expect(
      (await platform.children(resources.services, "hello")).map(({ metadata }) => metadata.name),
    ).toEqual(["hello"]);
    await platform.rollOut("hello");
    await platform.condition("hello", "Running", "DeploymentReady");

    const { status } = await platform.get("hello");
    expect(status).toMatchObject({
      observedGeneration: 1,
      runtime: "nodejs24",
      runtimeImage: "pull.example/spry/nodejs24:1",
      functionResourceProfile: "L",
      buildResourceProfile: "normal",
      replicas: 1,
      build: { image: `pull.example/shop-hello@sha256:${"1".repeat(64)}` },
    });
    expect(status!.conditions!.map(({ type }) => type)).toEqual([
      "Running",
      "BuildReady",
      "ConfigurationReady",
    ]);
    expect(status!.podSelector!.split(",")).toHaveLength(4);
  });

  test("tells its story in Events", async () => {
    await platform.running("hello");
    const reasons = await platform.until("Events", async () => {
      const events = await platform.client.list(resources.events, { namespace });
      const found = events.items
        .filter(({ involvedObject }) => involvedObject.name === "hello")
        .map(({ reason }) => reason);
      return found.includes("DeploymentReady") && found;
    });
    expect(reasons).toEqual(
      expect.arrayContaining([
        "ConfigMapCreated",
        "JobCreated",
        "JobFinished",
        "DeploymentCreated",
        "DeploymentReady",
      ]),
    );
  });

  test.each<[string, Partial<FunctionSpec>]>([
    ["the least", {}],
    [
      "everything",
      {
        runtime: "nodejs22",
        env: [
          { name: "A", value: "" },
          { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "C", valueFrom: { secretKeyRef: { name: "none", key: "x", optional: true } } },
        ],
        scaleConfig: { minReplicas: 1, maxReplicas: 3 },
        secretMounts: [{ secretName: "my.secret", mountPath: "/secret" }],
        labels: { app: "shop" },
        annotations: { note: "yes" },
        resourceConfiguration: {
          function: {
            resources: { requests: { cpu: "0.5", memory: "1024Mi" }, limits: { cpu: "1000m" } },
          },
          build: { profile: "fast" },
        },
        podSecurityContext: { runAsUser: 2000, supplementalGroups: [3] },
        containerSecurityContext: { readOnlyRootFilesystem: false },
      },
    ],
  ])("that says %s costs no writes once it is settled", async (_, spec) => {
    await platform.running("hello", spec);
    platform.writes.length = 0;
    const touched = { metadata: { annotations: { touched: "yes" } } };
    await platform.client.patch(functions, { namespace, name: "hello" }, touched);
    await platform.settle();
    expect(platform.writes).toEqual([]);
  });

  test("waits for the registry of its namespace, and goes on when it comes", async () => {
    const secret = { namespace, name: "serverless-registry-config-default" };
    await platform.until("the Secret's copy", () =>
      platform.client.get(resources.secrets, secret).catch(() => undefined),
    );
    await platform.client.delete(resources.secrets, {
      namespace: "kyma-system",
      name: "serverless-registry-config-default",
    });
    await platform.until("the copy to be gone", () =>
      platform.client.get(resources.secrets, secret).then(
        () => false,
        () => true,
      ),
    );
    await platform.apply("hello");
    await platform.condition(
      "hello",
      "BuildReady",
      "JobWaiting",
      "Secret serverless-registry-config-default",
    );
    await platform.installRegistry();
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
  });

  test("with mistakes says them all, builds nothing, and recovers", async () => {
    const env = [{ name: "2B", value: "x" }];
    const mistaken = {
      env,
      ...source("x"),
      resourceConfiguration: { function: { resources: { requests: { cpu: "1m" } } } },
    };
    await platform.apply("hello", mistaken);
    const { message, status } = await platform.condition(
      "hello",
      "ConfigurationReady",
      "InvalidFunctionSpec",
    );
    expect(status).toBe("False");
    expect(message).toMatch(
      /spec.env: 2B. Err: .*\. Function request cpu\(1m\) should be higher than minimal value \(10m\)/,
    );
    expect(await platform.children(resources.jobs, "hello")).toEqual([]);
    await platform.apply("hello", source("x"));
    await platform.condition("hello", "ConfigurationReady", "ConfigMapCreated");
  });

  test("on a deprecated runtime is warned", async () => {
    await platform.apply("hello", { runtime: "nodejs20" });
    await platform.condition(
      "hello",
      "ConfigurationReady",
      "ConfigMapCreated",
      "Warning: runtime nodejs20 is deprecated",
    );
  });

  test("on a runtime that is not installed names the installed ones", async () => {
    await platform.apply("hello", { runtime: "python312" });
    await platform.condition(
      "hello",
      "ConfigurationReady",
      "InvalidFunctionSpec",
      "use one of nodejs20, nodejs22, nodejs24",
    );
  });
});

describe("the controller", () => {
  test.each(["before the Job", "during the build", "after the build", "before the roll-out's end"])(
    "stopped %s, goes on where it was",
    async (moment) => {
      const restart = async (now: string, meanwhile: () => Promise<unknown>) => {
        if (now === moment) await platform.stopController();
        await meanwhile();
        if (now === moment) platform.startController();
      };
      await restart("before the Job", () => platform.apply("hello"));
      await platform.buildJob("hello");
      await restart("during the build", () => platform.settle());
      await restart("after the build", () => platform.finishBuild("hello"));
      await platform.deployment("hello");
      await restart("before the roll-out's end", () => platform.rollOut("hello"));
      await platform.rollOut("hello");
      await platform.condition("hello", "Running", "DeploymentReady");
      expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    },
  );

  test("restarted with a settled Function writes nothing, even when the Job is long gone", async () => {
    const { status } = await platform.running("hello");
    const [job] = await platform.children(resources.jobs, "hello");
    await platform.client.delete(
      resources.jobs,
      { namespace, name: job!.metadata.name! },
      { propagationPolicy: "Background" },
    );
    await platform.settle();
    await platform.stopController();
    platform.writes.length = 0;
    platform.startController();
    await platform.settle();
    expect(platform.writes).toEqual([]);
    expect((await platform.get("hello")).status).toEqual(status);
  });

  test("writes nothing in an hour in which nothing happens", async () => {
    await platform.running("hello");
    await platform.running("scaled", { scaleConfig: { minReplicas: 1, maxReplicas: 3 } });
    await platform.apply("broken", { source: { inline: { source: "x", dependencies: "{" } } });
    await platform.condition("broken", "ConfigurationReady", "InvalidFunctionSpec");
    await platform.settle();
    platform.writes.length = 0;
    await platform.clock.advance(3_600_000);
    await platform.settle();
    expect(platform.writes).toEqual([]);
  });

  test("takes over from an earlier Function of the same name, without a build", async () => {
    await platform.running("hello");
    const before = await platform.deployment("hello");
    await platform.client.delete(functions, { namespace, name: "hello" });
    await platform.apply("hello");
    await platform.until("a Deployment of its own", async () => {
      const found = (await platform.children(resources.deployments, "hello"))[0];
      return found && found.metadata.uid !== before.metadata.uid;
    });
  });

  test("gives new namespaces the registry's Secret and the ServiceAccount, and keeps them", async () => {
    const secret = { namespace: "fresh", name: "serverless-registry-config-default" };
    await platform.client.create(resources.namespaces, { metadata: { name: "fresh" } });
    const read = async () => platform.client.get(resources.secrets, secret).catch(() => undefined);
    await platform.until("the copy", read);
    await platform.until("the account", () =>
      platform.client
        .get(resources.serviceAccounts, { namespace: "fresh", name: "serverless-function" })
        .catch(() => undefined),
    );
    await platform.installRegistry("other.example");
    const other = Buffer.from("other.example").toString("base64");
    await platform.until(
      "the new address",
      async () => (await read())?.data?.["pullRegAddr"] === other,
    );
    const mine = {
      metadata: { labels: { "serverless.kyma-project.io/managed-by": "user" } },
      data: { pullRegAddr: "bWluZQ==" },
    };
    await platform.client.patch(resources.secrets, secret, mine);
    await platform.settle();
    expect((await read())!.data!["pullRegAddr"]).toBe("bWluZQ==");
  });

  test("does not fight over what others add to a ServiceAccount", async () => {
    const account = { namespace, name: "serverless-function" };
    await platform.until("the account", () =>
      platform.client.get(resources.serviceAccounts, account).catch(() => undefined),
    );
    const imagePullSecrets = [{ name: "serverless-registry-config-default" }, { name: "added" }];
    await platform.client.patch(resources.serviceAccounts, account, { imagePullSecrets });
    await platform.settle();
    expect(
      (await platform.client.get(resources.serviceAccounts, account)).imagePullSecrets,
    ).toEqual(imagePullSecrets);
  });
});
