/** A Function that is served on demand: its Knative Service, and the changes between the two ways of serving. */
import { functionRevisions, knative, type Revision } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createConfiguration,
  find,
  installKnative,
  kserviceOf,
  reportServing,
  slicesOf,
  writeSlice,
} from "../testing/knative.ts";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;

beforeEach(async () => {
  platform = await TestPlatform.start();
  await installKnative(platform);
});
afterEach(() => platform[Symbol.asyncDispose]());

const fromZero = { scaleConfig: { minReplicas: 0, maxReplicas: 5 } };
const deploymentsOf = (name: string) => platform.children(resources.deployments, name);
const serviceOf = (name: string) => platform.client.get(resources.services, { namespace, name });

test("gets a Knative Service with the image, the bounds and the revision's name, and no Deployment", async () => {
  await platform.apply("dice", {
    ...fromZero,
    concurrency: { target: 5, limit: 10 },
    timeoutSeconds: 20,
    labels: { team: "a" },
  });
  await platform.finishBuild("dice");
  const kservice = await kserviceOf(platform, "dice");
  const { template, traffic } = kservice.spec;
  expect(kservice.metadata.ownerReferences?.[0]).toMatchObject({ kind: "Function", name: "dice" });
  expect(template.metadata).toMatchObject({
    name: "dice-00001",
    labels: { team: "a", "serverless.kyma-project.io/function-name": "dice" },
    annotations: {
      "autoscaling.knative.dev/min-scale": "0",
      "autoscaling.knative.dev/max-scale": "5",
      "autoscaling.knative.dev/target": "5",
    },
  });
  expect(template.metadata?.labels).not.toHaveProperty("serverless.kyma-project.io/resource");
  expect(template.spec).toMatchObject({ containerConcurrency: 10, timeoutSeconds: 25 });
  const [container] = template.spec.containers;
  expect(container?.image).toMatch(/@sha256:1{64}$/);
  expect(container?.ports).toEqual([{ containerPort: 8080, protocol: "TCP" }]);
  expect(container?.env).toContainEqual({ name: "FUNC_TIMEOUT", value: "20" });
  expect(traffic).toEqual([{ latestRevision: true, percent: 100 }]);
  expect(await deploymentsOf("dice")).toEqual([]);
  expect((await serviceOf("dice")).spec?.selector).toBeUndefined();
});

test("is Running when its Knative Service is Ready, and says why when it is not", async () => {
  await platform.apply("dice", fromZero);
  await platform.finishBuild("dice");
  await platform.condition("dice", "Running", "DeploymentCreated", "Knative Service dice created");
  await reportServing(platform, "dice", "Unknown", "waiting for a Pod");
  await platform.condition("dice", "Running", "DeploymentWaiting", "waiting for a Pod");
  await reportServing(platform, "dice", "False", "container exited with code 1");
  await platform.condition("dice", "Running", "DeploymentFailed", "exited with code 1");
  await reportServing(platform, "dice");
  await platform.condition("dice", "Running", "DeploymentReady", "dice-00001");
  const { status } = await platform.get("dice");
  expect(status?.replicas).toBe(0);
  expect(status?.podSelector).toContain("serving.knative.dev/service=dice");
});

test("traffic names revisions by their numbers", async () => {
  await platform.apply("dice", {
    traffic: [
      { revision: 3, percent: 90 },
      { latest: true, percent: 10, tag: "next" },
    ],
  });
  await platform.finishBuild("dice");
  expect((await kserviceOf(platform, "dice")).spec.traffic).toEqual([
    { revisionName: "dice-00003", latestRevision: false, percent: 90 },
    { latestRevision: true, percent: 10, tag: "next" },
  ]);
});

test("a cold start is reported once, and neither the first Pod nor a second one is one", async () => {
  await platform.apply("dice", fromZero);
  await platform.finishBuild("dice");
  const kservice = await kserviceOf(platform, "dice");
  const { template } = kservice.spec;
  const run = async (name: string) => {
    const labels = {
      ...template.metadata?.labels,
      "serving.knative.dev/service": "dice",
      "serving.knative.dev/revision": "dice-00001",
    };
    const metadata = { name, namespace, labels };
    const { containers, volumes = [] } = template.spec;
    const spec = { containers, volumes, serviceAccountName: "serverless-function" };
    await platform.client.create(resources.pods, { metadata, spec });
  };
  const end = (name: string) =>
    platform.client.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 });
  const replicas = (count: number) =>
    platform.until(`${count} Pods`, async () => {
      const { status } = await platform.get("dice");
      return status?.replicas === count && status;
    });
  const coldStarts = async () =>
    (await platform.client.list(resources.events, { namespace })).items
      .filter(({ reason }) => reason === "ColdStart")
      .reduce((sum, { count }) => sum + (count ?? 1), 0);

  await run("first");
  expect(await replicas(1)).not.toHaveProperty("lastColdStart");
  await reportServing(platform, "dice");
  await platform.condition("dice", "Running", "DeploymentReady");
  await end("first");
  await replicas(0);
  await run("second");
  const { lastColdStart } = await replicas(1);
  expect(lastColdStart).toMatch(/^\d{4}-\d\d-\d\dT/);
  await run("third");
  expect(await replicas(2)).toMatchObject({ lastColdStart });
  await platform.until("an Event", async () => (await coldStarts()) === 1);
});

test("other traffic leaves the template of its revision as Knative has completed it", async () => {
  await platform.apply("dice", { ...fromZero, timeoutSeconds: 400 });
  await platform.finishBuild("dice");
  const { spec } = await kserviceOf(platform, "dice");
  // Otherwise Knative's default ends requests without a response after 300 s.
  expect(spec.template.spec).toMatchObject({ responseStartTimeoutSeconds: 405 });
  const [container] = spec.template.spec.containers;
  const completed = { ...container, tty: false };
  await platform.client.patch(
    knative.services,
    { namespace, name: "dice" },
    { spec: { template: { spec: { containers: [completed] } } } },
  );
  await platform.settle();
  await platform.apply("dice", {
    ...fromZero,
    timeoutSeconds: 400,
    traffic: [{ revision: 1, percent: 100 }],
  });
  const changed = await platform.until("other traffic", async () => {
    const kservice = await kserviceOf(platform, "dice");
    return kservice.spec.traffic?.[0]?.revisionName === "dice-00001" && kservice;
  });
  expect(changed.spec.template.metadata?.name).toBe("dice-00001");
  expect(changed.spec.template.spec.containers[0]).toHaveProperty("tty", false);
});

test("takes over from a Deployment step by step: nothing goes before its successor has the requests", async () => {
  await platform.running("dice");
  await writeSlice(platform, "dice", "pods");
  await platform.apply("dice", fromZero);
  await kserviceOf(platform, "dice");
  await platform.settle();
  // Not ready yet: everything stays as it is.
  expect((await serviceOf("dice")).spec?.selector).toBeDefined();
  expect(await deploymentsOf("dice")).toHaveLength(1);

  await reportServing(platform, "dice");
  await platform.until("no selector", async () => !(await serviceOf("dice")).spec?.selector);
  await platform.settle();
  // Callers inside the cluster still find the Pods.
  expect(await slicesOf(platform, "dice")).toEqual(["dice-pods"]);

  await writeSlice(platform, "dice", "gateway");
  await platform.until(
    "the former slices removed",
    async () => (await slicesOf(platform, "dice")).join() === "dice-gateway",
  );
  await platform.settle();
  expect(await deploymentsOf("dice")).toHaveLength(1);
  await platform.clock.advance(5_000);
  await platform.until("no Deployment", async () => (await deploymentsOf("dice")).length === 0);
  await platform.condition("dice", "Running", "DeploymentReady");
});

test("goes back to a Deployment in the same way", async () => {
  await platform.apply("dice", fromZero);
  await platform.finishBuild("dice");
  await reportServing(platform, "dice");
  await writeSlice(platform, "dice", "gateway");
  await platform.condition("dice", "Running", "DeploymentReady");

  await platform.apply("dice", { scaleConfig: { minReplicas: 1, maxReplicas: 2 } });
  await platform.deployment("dice");
  await platform.settle();
  expect((await serviceOf("dice")).spec?.selector).toBeUndefined();

  await platform.rollOut("dice");
  await platform.until("a selector", async () => (await serviceOf("dice")).spec?.selector);
  await platform.clock.advance(6_000);
  await platform.settle();
  // Its slices do not exist yet.
  expect(await find(platform, "dice")).toBeDefined();

  await writeSlice(platform, "dice", "pods");
  await platform.client.delete(resources.endpointSlices, { namespace, name: "dice-gateway" });
  await platform.settle();
  expect(await find(platform, "dice")).toBeDefined();
  await platform.clock.advance(5_000);
  await platform.until("no Knative Service", async () => !(await find(platform, "dice")));
});

describe("traffic to revisions from the time as a Deployment", () => {
  const edit = async (text: string, digit: string, spec: object = {}) => {
    await platform.apply("dice", { source: { inline: { source: text } }, ...spec });
    await platform.finishBuild("dice", digit);
    await platform.rollOut("dice");
    await platform.condition("dice", "Running", "DeploymentReady");
    await platform.settle();
  };
  const traffic = (...revisions: number[]) => ({
    source: { inline: { source: "two" } },
    traffic: [
      ...revisions.map((revision) => ({ revision, percent: 10 })),
      { latest: true, percent: 100 - revisions.length * 10 },
    ],
  });
  const revision = async (number: number): Promise<Revision | undefined> =>
    (await platform.client.list(knative.revisions, { namespace })).items.find(
      ({ metadata }) => metadata.name === `dice-0000${number}`,
    );

  beforeEach(async () => {
    await edit("one", "1", { env: [{ name: "A", value: "1" }], timeoutSeconds: 7 });
    await edit("two", "2");
  });

  test("restores them from the history, next to the Configuration's own", async () => {
    await platform.apply("dice", {
      ...traffic(1),
      scaleConfig: { minReplicas: 0, maxReplicas: 4 },
    });
    await kserviceOf(platform, "dice");
    await platform.settle();
    expect(await revision(1)).toBeUndefined();
    const configuration = await createConfiguration(platform, "dice");
    const restored = await platform.until("revision 1", () => revision(1));
    expect(restored.metadata.ownerReferences?.[0]).toMatchObject({
      kind: "Configuration",
      name: "dice",
      uid: configuration.metadata.uid,
      controller: true,
    });
    expect(restored.metadata.labels).toMatchObject({
      "serverless.kyma-project.io/function-name": "dice",
      "serving.knative.dev/configuration": "dice",
      "serving.knative.dev/configurationGeneration": "0",
      "serving.knative.dev/routingState": "pending",
      "serving.knative.dev/service": "dice",
    });
    // How it is scaled is what the Function says now; all else is what it was.
    expect(restored.metadata.annotations).toMatchObject({
      "autoscaling.knative.dev/min-scale": "0",
      "autoscaling.knative.dev/max-scale": "4",
    });
    const [container] = restored.spec.containers;
    expect(container?.image).toMatch(/@sha256:1{64}$/);
    expect(container?.env).toContainEqual({ name: "A", value: "1" });
    expect(restored.spec.timeoutSeconds).toBe(12);
  });

  test("leaves alone what is there, and what the history does not have", async () => {
    await platform.apply("dice", traffic(2, 9));
    await kserviceOf(platform, "dice");
    await createConfiguration(platform, "dice");
    const restored = await platform.until("revision 2", () => revision(2));
    await platform.apply("dice", { ...traffic(2, 1), labels: { a: "b" } });
    await platform.until("revision 1", () => revision(1));
    expect(await revision(9)).toBeUndefined();
    expect((await revision(2))?.metadata.resourceVersion).toBe(restored.metadata.resourceVersion);
  });

  test("does not take a record of another Function of that name for its own", async () => {
    const [record] = await platform.children(functionRevisions, "dice");
    await platform.client.patch(
      functionRevisions,
      { namespace, name: "dice-00001" },
      {
        metadata: { ownerReferences: [{ ...record?.metadata.ownerReferences?.[0], uid: "other" }] },
      },
    );
    await platform.apply("dice", traffic(1));
    await kserviceOf(platform, "dice");
    await createConfiguration(platform, "dice");
    await platform.settle();
    expect(await revision(1)).toBeUndefined();
  });
});

test("without Knative's definitions it says so, and everything else goes on", async () => {
  await using plain = await TestPlatform.start();
  await plain.apply("zero", fromZero);
  await plain.finishBuild("zero");
  await plain.condition(
    "zero",
    "Running",
    "DeploymentWaiting",
    "does not serve serving.knative.dev",
  );
  await plain.running("dice");
});
