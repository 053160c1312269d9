/** A Function's journeys, through the API server's front door. */
import { functions, type FunctionSpec } from "@spry/function";
import { type Resource, resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namespace, TestPlatform } from "./testing/platform.ts";

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

  test("on a runtime that is not installed is told which ones are", async () => {
    await platform.apply("hello", { runtime: "python312" });
    await platform.condition(
      "hello",
      "ConfigurationReady",
      "InvalidFunctionSpec",
      "use one of nodejs20, nodejs22, nodejs24",
    );
  });
});

describe("an edit", () => {
  test("of the code builds anew while the old image serves", async () => {
    await platform.running("hello");
    await platform.apply("hello", source("two"));
    await platform.buildJob("hello");
    await platform.condition("hello", "BuildReady", "JobCreated");
    expect(await imageOf("hello")).toContain("1".repeat(64));
    expect(
      (await platform.condition("hello", "Running", "DeploymentReady")).observedGeneration,
    ).toBe(1);
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "Running", "DeploymentUpdated");
    expect(await imageOf("hello")).toContain("2".repeat(64));
    await platform.rollOut("hello");
    const { status } = await platform.until("generation 2 running", async () => {
      const fn = await platform.get("hello");
      return fn.status?.conditions?.[0]?.reason === "DeploymentReady" && fn;
    });
    expect(status).toMatchObject({
      observedGeneration: 2,
      conditions: [{ type: "Running", observedGeneration: 2 }, {}, {}],
    });
  });

  test("during a build replaces it: only the newest is built", async () => {
    await platform.apply("hello", source("one"));
    const first = await platform.buildJob("hello");
    await platform.apply("hello", source("two"));
    const second = await platform.until("the second build", async () => {
      const jobs = await platform.children(resources.jobs, "hello");
      return jobs.length === 1 && jobs[0]?.metadata.name !== first.metadata.name && jobs[0];
    });
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "BuildReady", "JobFinished", second.metadata.name);
    expect(await imageOf("hello")).toContain("2".repeat(64));
  });

  test.each([
    ["a label", {}, { labels: { a: "b" } }, "updated"],
    ["an annotation", {}, { annotations: { a: "b" } }, "same"],
    ["a variable", { env: [{ name: "A", value: "b" }] }, {}, "updated"],
    ["the resources", { resourceConfiguration: { function: { profile: "XS" } } }, {}, "updated"],
    ["the replicas", { replicas: 3 }, {}, "updated"],
  ])("of %s builds nothing", async (_, spec, metadata, deployment) => {
    await platform.running("hello");
    const before = await platform.deployment("hello");
    await platform.apply("hello", spec, metadata);
    if (deployment === "updated") {
      await platform.until("the Deployment's update", async () => {
        const { resourceVersion } = (await platform.deployment("hello")).metadata;
        return resourceVersion !== before.metadata.resourceVersion;
      });
    }
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    expect((await platform.condition("hello", "BuildReady", "JobFinished")).status).toBe("True");
    if (deployment === "same")
      expect((await platform.deployment("hello")).metadata.resourceVersion).toBe(
        before.metadata.resourceVersion,
      );
  });

  test("after many others keeps the Jobs of the last few only", async () => {
    for (const digit of ["1", "2", "3", "4", "5", "6"]) {
      await platform.apply("hello", source(`version ${digit}`));
      await platform.finishBuild("hello", digit);
      await platform.until("its image", async () =>
        (await imageOf("hello"))?.includes(digit.repeat(64)),
      );
    }
    await platform.until(
      "four Jobs",
      async () => (await platform.children(resources.jobs, "hello")).length === 4,
    );
  });

  test("that is taken back needs no build", async () => {
    await platform.running("hello", source("one"));
    await platform.apply("hello", source("two"));
    await platform.buildJob("hello");
    await platform.apply("hello", source("one"));
    await platform.condition("hello", "BuildReady", "JobFinished");
    await platform.until(
      "the obsolete build's end",
      async () => (await platform.children(resources.jobs, "hello")).length === 1,
    );
    expect(await imageOf("hello")).toContain("1".repeat(64));
  });

  test("back to a version whose finished Job is still there uses its image", async () => {
    await platform.running("hello", source("one"));
    await platform.apply("hello", source("two"));
    await platform.finishBuild("hello", "2");
    await platform.until("image two", async () =>
      (await imageOf("hello"))?.includes("2".repeat(64)),
    );
    await platform.apply("hello", source("one"));
    await platform.until("image one", async () =>
      (await imageOf("hello"))?.includes("1".repeat(64)),
    );
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(2);
  });

  test("to something invalid leaves the running version alone", async () => {
    await platform.running("hello");
    const before = await platform.deployment("hello");
    await platform.apply("hello", { env: [{ name: "2B" }] });
    await platform.condition("hello", "ConfigurationReady", "InvalidFunctionSpec");
    await platform.settle();
    expect((await platform.deployment("hello")).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
    await platform.condition("hello", "Running", "DeploymentReady");
  });
});

describe("a build that fails", () => {
  test("by the user's mistake says what the installer said, and is not run again until the source changes", async () => {
    await platform.apply("hello", source("bad"));
    const job = await platform.endBuild("hello", {
      exitCode: 1,
      message: "npm error 404 no-such-package",
    });
    const { status } = await platform.condition(
      "hello",
      "BuildReady",
      "JobFailed",
      "npm error 404 no-such-package",
    );
    expect(status).toBe("False");
    await platform.client.delete(
      resources.jobs,
      { namespace, name: job.metadata.name! },
      { propagationPolicy: "Background" },
    );
    await platform.apply("hello", { ...source("bad"), replicas: 2 });
    await platform.clock.advance(3_600_000);
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toEqual([]);
    await platform.condition("hello", "BuildReady", "JobFailed");
    await platform.apply("hello", source("good"));
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
  });

  test("to begin because its Pod may not be made says why", async () => {
    await platform.apply("hello");
    const { metadata } = await platform.buildJob("hello");
    await platform.condition("hello", "BuildReady", "JobCreated");
    const { name = "", uid = "" } = metadata;
    await platform.client.create(resources.events, {
      metadata: { namespace, name: `${name}.1` },
      involvedObject: { apiVersion: "batch/v1", kind: "Job", namespace, name, uid },
      reason: "FailedCreate",
      type: "Warning",
      message: `Error creating: pods "${name}-x7k2p" is forbidden: exceeded quota: small`,
    });
    await platform.clock.advance(10_000);
    const message = `Job ${name} is still in progress: its Pod cannot be made: exceeded quota: small`;
    await platform.condition("hello", "BuildReady", "JobRunning", message);
  });

  test("by its surroundings is run again, later each time", async () => {
    await platform.apply("hello");
    for (const pauseMs of [5000, 10_000, 20_000]) {
      const job = await platform.endBuild("hello", {
        exitCode: 2,
        message: "registry: ECONNREFUSED",
      });
      await platform.condition(
        "hello",
        "BuildReady",
        "JobFailed",
        "failed, it will be re-run: registry: ECONNREFUSED",
      );
      await platform.clock.advance(pauseMs - 500);
      await platform.settle();
      expect((await platform.children(resources.jobs, "hello"))[0]!.metadata.uid).toBe(
        job.metadata.uid,
      );
      await platform.clock.advance(500);
      await platform.until(
        "another try",
        async () => (await platform.buildJob("hello")).metadata.uid !== job.metadata.uid,
      );
    }
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
    expect((await platform.get("hello")).status!.build).not.toHaveProperty("failures");
  });
});

describe("five builds at a time", () => {
  test("the others wait, and come in the order in which they came, also after a restart", async () => {
    const all = Array.from({ length: 8 }, (_, index) => `fn-${index}`);
    for (const name of all) {
      await platform.apply(name);
      await platform.condition(
        name,
        "BuildReady",
        all.indexOf(name) < 5 ? "JobCreated" : "JobWaiting",
        all.indexOf(name) < 5 ? "" : "free build slot",
      );
      await platform.clock.advance(1000);
    }
    const building = async () => {
      const jobs = await platform.client.list(resources.jobs, { namespace });
      return jobs.items.map(({ metadata }) => metadata.name!.replace(/-build-.*/, "")).sort();
    };
    expect(await building()).toEqual(all.slice(0, 5));
    await platform.stopController();
    platform.startController();
    await platform.settle();
    await platform.finishBuild("fn-3");
    await platform.buildJob("fn-5");
    await platform.settle();
    expect(await building()).toEqual(all.slice(0, 6));
    await platform.client.delete(functions, { namespace, name: "fn-6" });
    await platform.finishBuild("fn-0");
    await platform.buildJob("fn-7");
  });
});

describe("what others do", () => {
  test.each<[string, Resource]>([
    ["Deployment", resources.deployments],
    ["Service", resources.services],
    ["ConfigMap", resources.configMaps],
  ])("a deleted %s comes back, without a build", async (_, resource) => {
    await platform.running("hello");
    await platform.client.delete(resource, { namespace, name: "hello" });
    await platform.until(
      "the new one",
      async () => (await platform.children(resource, "hello"))[0],
    );
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    expect(await imageOf("hello")).toContain("1".repeat(64));
  });

  test("a changed Deployment is put right, a restart by kubectl stays", async () => {
    await platform.running("hello");
    const restartedAt = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" };
    const patch = { spec: { replicas: 7, template: { metadata: { annotations: restartedAt } } } };
    await platform.client.patch(resources.deployments, { namespace, name: "hello" }, patch, {
      type: "strategic",
    });
    const deployment = await platform.until("one replica", async () => {
      const found = await platform.deployment("hello");
      return found.spec?.replicas === 1 && found;
    });
    expect(deployment.spec!.template.metadata!.annotations).toMatchObject(restartedAt);
  });

  test("a foreign Service of that name is left alone, and the Function says so", async () => {
    const foreign = { metadata: { name: "hello", namespace }, spec: { ports: [{ port: 9 }] } };
    await platform.client.create(resources.services, foreign);
    await platform.apply("hello");
    await platform.finishBuild("hello");
    const { status } = await platform.condition(
      "hello",
      "Running",
      "ServiceFailed",
      "Service hello exists and does not belong to the Function",
    );
    expect(status).toBe("False");
    expect(
      (await platform.client.get(resources.services, { namespace, name: "hello" })).spec!.ports![0]!
        .port,
    ).toBe(9);
    await platform.client.delete(resources.services, { namespace, name: "hello" });
    await platform.clock.advance(30_000);
    await platform.until(
      "our Service",
      async () => (await platform.children(resources.services, "hello"))[0],
    );
  });

  test("a Secret that a variable refers to rolls the Function out when it changes", async () => {
    const secret = (value: string) => ({
      metadata: { name: "creds", namespace },
      stringData: { token: value, other: value },
    });
    const refer = (key: string) => ({
      env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "creds", key } } }],
    });
    await platform.client.create(resources.secrets, secret("one"));
    await platform.running("hello", refer("token"));
    const digestOf = async () =>
      (await platform.deployment("hello")).spec!.template.metadata!.annotations![
        "serverless.kyma-project.io/references"
      ];
    const before = await digestOf();
    expect(before).toBeTruthy();
    await platform.client.patch(
      resources.secrets,
      { namespace, name: "creds" },
      { stringData: { other: "two" } },
    );
    await platform.settle();
    expect(await digestOf()).toBe(before);
    await platform.client.patch(
      resources.secrets,
      { namespace, name: "creds" },
      { stringData: { token: "two" } },
    );
    await platform.until("the roll-out", async () => (await digestOf()) !== before);
    await platform.apply("hello", {});
    await platform.until("no reference", async () => (await digestOf()) === undefined);
  });
});

describe("scaling", () => {
  test("between bounds gets an autoscaler of the Function; without bounds it goes", async () => {
    await platform.running("hello", { scaleConfig: { minReplicas: 1, maxReplicas: 3 } });
    const [autoscaler] = await platform.children(resources.horizontalPodAutoscalers, "hello");
    expect(autoscaler!.spec!.scaleTargetRef).toMatchObject({ kind: "Function", name: "hello" });
    await platform.apply("hello");
    await platform.until(
      "no autoscaler",
      async () =>
        (await platform.children(resources.horizontalPodAutoscalers, "hello")).length === 0,
    );
  });

  test("a scaler's decision reaches the Deployment and is reset by no re-apply", async () => {
    const spec = { scaleConfig: { minReplicas: 1, maxReplicas: 5 } };
    await platform.running("hello", spec);
    await platform.client.patch(
      functions,
      { namespace, name: "hello" },
      { spec: { replicas: 4 } },
      { subresource: "scale", fieldManager: "hpa" },
    );
    await platform.until(
      "four replicas",
      async () => (await platform.deployment("hello")).spec?.replicas === 4,
    );
    await platform.rollOut("hello");
    await platform.until(
      "the status",
      async () => (await platform.get("hello")).status?.replicas === 4,
    );
    await platform.apply("hello", { ...spec, env: [{ name: "A", value: "b" }] });
    await platform.settle();
    expect((await platform.get("hello")).spec.replicas).toBe(4);
    expect((await platform.deployment("hello")).spec?.replicas).toBe(4);
  });
});

describe("Pods that do not start", () => {
  const crashed = {
    restartCount: 2,
    state: { waiting: { reason: "CrashLoopBackOff" } },
    lastState: {
      terminated: { exitCode: 1, reason: "Error", message: "SyntaxError: Unexpected token" },
    },
  };
  const unavailable = [
    { type: "Available", status: "False", reason: "MinimumReplicasUnavailable" },
    { type: "Progressing", status: "True", reason: "ReplicaSetUpdated" },
  ];

  test("of a new Function: it failed, with the last lines of what they wrote", async () => {
    await platform.apply("hello");
    await platform.finishBuild("hello");
    const deployment = await platform.deployment("hello");
    await platform.deploymentStatus(deployment, { replicas: 1, conditions: unavailable });
    await platform.runPod(deployment, "hello-1", crashed);
    const { status } = await platform.condition(
      "hello",
      "Running",
      "DeploymentFailed",
      "CrashLoopBackOff (exit code 1): SyntaxError: Unexpected token",
    );
    expect(status).toBe("False");
    await platform.rollOut("hello");
    await platform.condition("hello", "Running", "DeploymentReady");
  });

  test("of an edit, while the old ones serve: it is still waiting, and says for what", async () => {
    await platform.running("hello", source("one"));
    await platform.apply("hello", source("two"));
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "Running", "DeploymentUpdated");
    const deployment = await platform.deployment("hello");
    const conditions = [
      { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
      unavailable[1],
    ];
    await platform.deploymentStatus(deployment, { replicas: 2, conditions });
    await platform.runPod(deployment, "hello-2", crashed);
    const { status } = await platform.condition(
      "hello",
      "Running",
      "DeploymentWaiting",
      "SyntaxError: Unexpected token",
    );
    expect(status).toBe("Unknown");
    await platform.apply("hello", source("one"));
    await platform.condition("hello", "Running", "DeploymentUpdated");
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
