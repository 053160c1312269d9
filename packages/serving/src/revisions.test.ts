/** Revisions, by what happens to their Deployments and Pods: conditions and reasons are Knative's. */
import { knative, knativeNames } from "@spry/function";
import { getCondition, resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { kservice, namespace, ServingPlatform } from "./testing/platform.ts";

const image = `registry.example/hello@sha256:${"a".repeat(64)}`;
const tagged = "registry.example/hello:1";
const revision = "hello-00001";

test("the Deployment of a Revision is Knative's, without a sidecar", async () => {
  await using platform = await ServingPlatform.start();
  const service = kservice("hello", {
    timeoutSeconds: 20,
    containerConcurrency: 5,
    containers: [
      {
        image,
        env: [{ name: "A", value: "b" }],
        ports: [{ name: "h2c", containerPort: 9000 }],
        livenessProbe: { httpGet: { path: "/live", scheme: "http" } },
      },
    ],
  });
  service.spec.template.metadata = {
    labels: { team: "blue" },
    annotations: { note: "x", "autoscaling.knative.dev/initial-scale": "2" },
  };
  await platform.apply(service);
  const deployment = await platform.deployment(revision);
  const uid = (await platform.get(knative.revisions, revision)).metadata.uid;
  expect(deployment.metadata.name).toBe("hello-00001-deployment");
  expect(deployment.spec).toMatchObject({
    replicas: 2,
    selector: { matchLabels: { "serving.knative.dev/revisionUID": uid } },
    progressDeadlineSeconds: 600,
  });
  const { metadata, spec } = deployment.spec?.template ?? {};
  expect(metadata?.labels).toMatchObject({
    app: revision,
    team: "blue",
    "serving.knative.dev/service": "hello",
    "serving.knative.dev/configuration": "hello",
    "serving.knative.dev/revision": revision,
    "serving.knative.dev/configurationGeneration": "1",
  });
  expect(metadata?.labels).not.toHaveProperty(["serving.knative.dev/routingState"]);
  expect(metadata?.annotations).toMatchObject({ note: "x" });
  expect(metadata?.annotations).not.toHaveProperty(["autoscaling.knative.dev/initial-scale"]);
  expect(spec?.terminationGracePeriodSeconds).toBe(20);
  expect(spec?.containers).toMatchObject([
    {
      name: "user-container",
      image,
      env: [
        { name: "A", value: "b" },
        { name: "PORT", value: "9000" },
        { name: "K_REVISION", value: revision },
        { name: "K_CONFIGURATION", value: "hello" },
        { name: "K_SERVICE", value: "hello" },
      ],
      ports: [{ name: "user-port", containerPort: 9000 }],
      readinessProbe: { tcpSocket: { port: 9000 }, periodSeconds: 1 },
      livenessProbe: { httpGet: { path: "/live", port: 9000, scheme: "HTTP" } },
      terminationMessagePolicy: "FallbackToLogsOnError",
    },
  ]);
  const name = knativeNames.privateService(revision);
  const own = await platform.until("the private Service", () =>
    platform.get(resources.services, name).catch(() => undefined),
  );
  expect(own.spec).toMatchObject({
    selector: { "serving.knative.dev/revisionUID": uid },
    ports: [{ name: "http2", appProtocol: "kubernetes.io/h2c", port: 80, targetPort: 9000 }],
  });
});

describe("a Revision that does not get ready", () => {
  test.each([
    [
      "ends with an error",
      {
        lastState: { terminated: { exitCode: 7, message: "no database" } },
        state: { waiting: { reason: "CrashLoopBackOff" } },
      },
      "ContainerHealthy=False ExitCode7",
      "Container failed with: no database",
    ],
    [
      "ends without one",
      { lastState: { terminated: { exitCode: 0 } } },
      "ContainerHealthy=False ExitCode0",
      "Container failed with: container exited with no error",
    ],
    [
      "has no image",
      { state: { waiting: { reason: "ImagePullBackOff", message: "not found" } } },
      "ResourcesAvailable=False ImagePullBackOff",
      "not found",
    ],
    [
      "has no image of its tag",
      { state: { waiting: { reason: "ImagePullBackOff", message: "not found" } } },
      "ContainerHealthy=False ContainerMissing",
      `Unable to fetch image "${tagged}": not found`,
      tagged,
    ],
  ] as const)("%s", async (_, status, condition, message, named: string = image) => {
    await using platform = await ServingPlatform.start();
    await platform.apply(kservice("hello", { containers: [{ image: named }] }));
    await platform.runPod(revision, status);
    await platform.rollOut(revision, 0);
    const failed = await platform.condition(knative.revisions, revision, condition);
    const [, reason] = condition.split(" ");
    expect(getCondition(failed.status?.conditions, "Ready")).toMatchObject({
      status: "False",
      reason,
      message,
    });
    const configuration = await platform.condition(
      knative.configurations,
      "hello",
      "Ready=False RevisionFailed",
    );
    expect(getCondition(configuration.status?.conditions, "Ready")?.message).toBe(
      `Revision "hello-00001" failed with message: ${message}.`,
    );
    const service = await platform.condition(knative.services, "hello", "Ready=False");
    expect(getCondition(service.status?.conditions, "ConfigurationsReady")?.reason).toBe(
      "RevisionFailed",
    );
    await platform.condition(knative.routes, "hello", "AllTrafficAssigned=False RevisionMissing");
  });

  test("exceeds its time", async () => {
    await using platform = await ServingPlatform.start();
    await platform.apply(kservice("hello"));
    const deployment = await platform.deployment(revision);
    const exceeded = {
      type: "Progressing",
      status: "False",
      reason: "ProgressDeadlineExceeded",
      message: "has timed out progressing.",
    };
    await platform.deploymentStatus(deployment, { replicas: 1, conditions: [exceeded] });
    await platform.condition(
      knative.revisions,
      revision,
      "ResourcesAvailable=False ProgressDeadlineExceeded",
    );
  });

  test("cannot have its Deployment's name", async () => {
    await using platform = await ServingPlatform.start();
    const labels = { app: "other" };
    await platform.client.create(resources.deployments, {
      metadata: { name: `${revision}-deployment`, namespace },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "a", image }] },
        },
      },
    });
    await platform.apply(kservice("hello"));
    await platform.condition(knative.revisions, revision, "ResourcesAvailable=False NotOwned");
  });

  test("becomes ready later all the same", async () => {
    await using platform = await ServingPlatform.start();
    await platform.apply(kservice("hello"));
    await platform.runPod(revision, { lastState: { terminated: { exitCode: 1, message: "x" } } });
    await platform.rollOut(revision, 0);
    await platform.condition(knative.services, "hello", "Ready=False");
    await platform.rollOut(revision);
    await platform.condition(knative.services, "hello", "Ready=True");
  });
});

test("a change of the template makes the next Revision, and only when it is ready it gets requests", async () => {
  await using platform = await ServingPlatform.start();
  await platform.running(kservice("hello"));
  await platform.apply(kservice("hello", { timeoutSeconds: 20 }));
  await platform.deployment("hello-00002");
  const waiting = await platform.condition(knative.configurations, "hello", "Ready=Unknown");
  expect(waiting.status).toMatchObject({
    latestCreatedRevisionName: "hello-00002",
    latestReadyRevisionName: "hello-00001",
  });
  const route = await platform.get(knative.routes, "hello");
  expect(route.status?.traffic?.[0]?.revisionName).toBe("hello-00001");
  await platform.rollOut("hello-00002");
  await platform.until("the new traffic", async () => {
    const { status } = await platform.condition(knative.services, "hello", "Ready=True");
    return status?.traffic?.[0]?.revisionName === "hello-00002";
  });
  const state = async (name: string) =>
    (await platform.get(knative.revisions, name)).metadata.labels?.[
      "serving.knative.dev/routingState"
    ];
  await platform.until("the routing states", async () => {
    return (await state("hello-00001")) === "reserve" && (await state("hello-00002")) === "active";
  });
});

test("a Revision that the Configuration's status does not name yet stays active", async () => {
  await using platform = await ServingPlatform.start();
  await platform.running(kservice("hello"));
  const first = await platform.get(knative.revisions, "hello-00001");
  // As the Configuration has just created it, with the Routes that are noted on the Configuration.
  const { labels, annotations, ownerReferences } = first.metadata;
  const next = {
    metadata: {
      name: "hello-00002",
      namespace,
      labels: { ...labels, "serving.knative.dev/configurationGeneration": "2" },
      annotations: { ...annotations, "serving.knative.dev/routes": "hello" },
      ownerReferences: ownerReferences ?? [],
    },
    spec: first.spec,
  };
  await platform.client.create(knative.revisions, next);
  // A pass of the Route, which is settled.
  await platform.client.patch(
    knative.routes,
    { namespace, name: "hello" },
    { metadata: { annotations: { touched: "yes" } } },
  );
  await platform.clock.advance(1_000);
  await platform.deployment("hello-00002");
  await platform.clock.advance(1_000);
  const { metadata } = await platform.get(knative.revisions, "hello-00002");
  expect(metadata.labels?.["serving.knative.dev/routingState"]).toBe("active");
  expect((await platform.deployment("hello-00002")).spec?.replicas).toBe(1);
});

test("a Revision's name that the user brings is kept; one that is taken is refused in the status", async () => {
  await using platform = await ServingPlatform.start();
  const named = (name: string, spec: object = {}) => {
    const service = kservice("hello", spec);
    service.spec.template.metadata = { name };
    return service;
  };
  await platform.running(named("hello-first"), "hello-first");
  await platform.running(named("hello-second", { timeoutSeconds: 9 }), "hello-second");
  // The name of another Revision, with another content.
  await platform.apply(named("hello-first", { timeoutSeconds: 10 }));
  await platform.condition(knative.configurations, "hello", "Ready=False RevisionFailed");
  const service = await platform.condition(
    knative.services,
    "hello",
    "RoutesReady=False RevisionNameTaken",
  );
  expect(service.status?.traffic).toMatchObject([{ revisionName: "hello-second" }]);
});

test("a digest is resolved once, and kept", async () => {
  const asked: string[] = [];
  const digest = `registry.example/app@sha256:${"b".repeat(64)}`;
  await using platform = await ServingPlatform.start({
    resolveDigest: (named) => {
      asked.push(named);
      return Promise.resolve(digest);
    },
  });
  await platform.running(kservice("hello", { containers: [{ image: "registry.example/app:v1" }] }));
  const { status } = await platform.get(knative.revisions, revision);
  expect(status?.containerStatuses).toEqual([{ name: "user-container", imageDigest: digest }]);
  const { spec } = await platform.deployment(revision);
  expect(spec?.template.spec?.containers[0]?.image).toBe(digest);
  const before = asked.length;
  await platform.rollOut(revision);
  await platform.settle();
  expect(asked.length).toBe(before);
});

test("what the room has made is left alone when it starts again", async () => {
  await using platform = await ServingPlatform.start();
  await platform.running(kservice("hello"));
  await platform.settle();
  const versions = async () => {
    const all = [knative.services, knative.configurations, knative.revisions, knative.routes];
    const lists = await Promise.all(
      all.map((each) => platform.client.list(each as typeof knative.routes)),
    );
    return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.resourceVersion));
  };
  const before = await versions();
  await platform.stopRoom();
  platform.startRoom();
  await platform.settle();
  expect(await versions()).toEqual(before);
});

test("a Revision of the class hpa is scaled by Kubernetes, with Knative's targets", async () => {
  await using platform = await ServingPlatform.start();
  const service = kservice("hello");
  const scale = "autoscaling.knative.dev";
  service.spec.template.metadata = {
    annotations: {
      [`${scale}/class`]: `hpa.${scale}`,
      [`${scale}/metric`]: "memory",
      [`${scale}/target`]: "75",
      [`${scale}/min-scale`]: "2",
      [`${scale}/max-scale`]: "5",
    },
  };
  await platform.running(service);
  const { spec } = await platform.get(resources.horizontalPodAutoscalers, revision);
  expect(spec).toMatchObject({
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: `${revision}-deployment` },
    minReplicas: 2,
    maxReplicas: 5,
    metrics: [
      {
        type: "Resource",
        resource: { name: "memory", target: { type: "AverageValue", averageValue: "75Mi" } },
      },
    ],
  });
});

test("init containers run the digests of their tags, and the status shows them", async () => {
  const resolveDigest = async (named: string) => named.replace(":1", `@sha256:${"b".repeat(64)}`);
  await using platform = await ServingPlatform.start({ resolveDigest });
  await platform.client.apply(resources.configMaps, {
    metadata: { name: "config-features", namespace: "knative-serving" },
    data: { "kubernetes.podspec-init-containers": "Enabled" },
  });
  const initContainers = [{ name: "first", image: tagged }];
  await platform.running(kservice("hello", { initContainers }));
  const digest = tagged.replace(":1", `@sha256:${"b".repeat(64)}`);
  const { spec } = (await platform.deployment(revision)).spec?.template ?? {};
  expect(spec?.initContainers?.[0]?.image).toBe(digest);
  const { status } = await platform.get(knative.revisions, revision);
  expect(status?.initContainerStatuses).toEqual([{ name: "first", imageDigest: digest }]);
});
