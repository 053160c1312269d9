/** A Function that is deployed: what others change, scaling, Pods that fail; through the API server's front door. */
import { defaultFunction, functions, managedBy } from "@spry/function";
import { type Resource, resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stamped } from "../children.ts";
import { desiredDeployment } from "./desired/deployment.ts";
import { settings } from "../testing/objects.ts";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const source = (code: string) => ({ source: { inline: { source: code } } });
const imageOf = async (name: string) =>
  (await platform.deployment(name)).spec?.template.spec?.containers[0]?.image;

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

test.each([
  { heapSizing: "none", options: undefined },
  { heapSizing: "old", options: expect.stringMatching(/^--max-old-space-size=\d+$/) as unknown },
] as const)(
  "a Deployment from before heaps were sized as now ($heapSizing) stays as it is until its Function changes",
  async ({ heapSizing, options }) => {
    const fn = defaultFunction(await platform.running("hello"));
    const heap = async () => {
      const [container] = (await platform.deployment("hello")).spec!.template.spec!.containers;
      return container!.env!.find(({ name }) => name === "NODE_OPTIONS")?.value;
    };
    expect(await heap()).toMatch(/^--max-old-space-size=\d+ --max-semi-space-size=\d+$/);
    await platform.stopController();
    const { key, image = "" } = fn.status!.build!;
    const former = stamped(
      desiredDeployment(fn, settings, { image, buildKey: key, heapSizing }),
      fn,
    );
    await platform.client.apply(resources.deployments, former, { fieldManager: managedBy });
    expect(await heap()).toEqual(options);
    platform.startController();
    await platform.settle();
    expect(await heap()).toEqual(options);
    await platform.apply("hello", { env: [{ name: "COLOUR", value: "red" }] });
    await platform.until("the size", async () =>
      Boolean((await heap())?.includes("--max-semi-space-size=")),
    );
  },
);

test("what a build's source lacks is in one Event", async () => {
  await platform.apply("hello");
  const leftOut = [
    'submodule "lib" is left out: its URL has the scheme file',
    '"a.bin" is a pointer',
  ];
  const image = `push.example:5000/${namespace}-hello@sha256:${"1".repeat(64)}`;
  await platform.endBuild("hello", { exitCode: 0, message: JSON.stringify({ image, leftOut }) });
  await platform.rollOut("hello");
  await platform.condition("hello", "Running", "DeploymentReady");
  await platform.settle();
  const { items } = await platform.client.list(resources.events, { namespace });
  expect(items.filter(({ reason }) => reason === "SourceIncomplete")).toMatchObject([
    { type: "Warning", message: leftOut.join("; "), count: 1 },
  ]);
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

  test("gets one Event about a foreign autoscaler, such as KEDA's, that also scales it", async () => {
    await platform.running("hello", { scaleConfig: { minReplicas: 1, maxReplicas: 3 } });
    const owner = { apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", name: "queue", uid: "1" };
    const warnings = async () =>
      (await platform.client.list(resources.events, { namespace })).items.filter(
        ({ reason }) => reason === "ScaledTwice",
      );
    expect(await warnings()).toEqual([]);
    await platform.client.create(resources.horizontalPodAutoscalers, {
      metadata: { name: "keda-hpa-queue", namespace, ownerReferences: [owner] },
      spec: {
        scaleTargetRef: {
          apiVersion: "serverless.kyma-project.io/v1alpha2",
          kind: "Function",
          name: "hello",
        },
        maxReplicas: 5,
      },
    });
    const [warning] = await platform.until("a warning", async () => {
      const found = await warnings();
      return found.length > 0 && found;
    });
    expect(warning).toMatchObject({
      type: "Warning",
      involvedObject: { kind: "Function", name: "hello" },
    });
    expect(warning?.message).toContain("remove spec.scaleConfig, or delete ScaledObject queue");
    await platform.client.patch(
      functions,
      { namespace, name: "hello" },
      { metadata: { labels: { a: "b" } } },
    );
    await platform.settle();
    expect((await warnings()).map(({ count }) => count)).toEqual([1]);
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

  test("of an edit, while the old ones serve: it has failed, and says why", async () => {
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
      "DeploymentFailed",
      "SyntaxError: Unexpected token",
    );
    expect(status).toBe("False");
    await platform.apply("hello", source("one"));
    await platform.condition("hello", "Running", "DeploymentUpdated");
  });

  test("of an edit that was given up: the return to what serves has not failed", async () => {
    await platform.running("hello", source("one"));
    const serving = await platform.deployment("hello");
    await platform.runPod(serving, "hello-1", { ready: true, state: { running: {} } });
    await platform.apply("hello", source("two"));
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "Running", "DeploymentUpdated");
    const conditions = [
      { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
      { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded", message: "late" },
    ];
    const givenUp = { replicas: 2, conditions };
    await platform.deploymentStatus(await platform.deployment("hello"), givenUp);
    await platform.condition("hello", "Running", "DeploymentFailed", "late");
    await platform.apply("hello", source("one"));
    await platform.settle();
    // As Kubernetes leaves it until the last Pod of the other template has ended.
    await platform.deploymentStatus(await platform.deployment("hello"), givenUp);
    await platform.condition("hello", "Running", "DeploymentUpdated");
    await platform.rollOut("hello");
    await platform.condition("hello", "Running", "DeploymentReady");
  });
});
