import { createHash } from "node:crypto";
import { annotations } from "@spry/function";
import { describe, expect, test } from "vitest";
import { digest, functionOf, settings } from "../../testing/objects.ts";
import { desiredAutoscaler } from "./autoscaler.ts";
import { desiredBuildJob } from "../../build/build-job.ts";
import { desiredConfigMap } from "./config-map.ts";
import { desiredDeployment } from "./deployment.ts";
import { desiredKService } from "./kservice.ts";
import { desiredService } from "./service.ts";

const ours = {
  "serverless.kyma-project.io/function-name": "hello",
  "serverless.kyma-project.io/managed-by": "function-controller",
  "serverless.kyma-project.io/uuid": "uid-hello",
};
const inputs = { image: `pull.example/shop-hello@${digest}`, buildKey: "k".repeat(64) };
const registry = {
  push: "push.example:5000",
  pull: "pull.example",
  isInternal: true,
  secretName: "serverless-registry-config-default",
  others: [],
};

const deploymentOf = (...spec: Parameters<typeof functionOf>) =>
  desiredDeployment(functionOf(...spec), settings, inputs);
const podOf = (...spec: Parameters<typeof functionOf>) => deploymentOf(...spec).spec!.template;
const containerOf = (...spec: Parameters<typeof functionOf>) => podOf(...spec).spec!.containers[0]!;
const jobOf = (...spec: Parameters<typeof functionOf>) =>
  desiredBuildJob(functionOf(...spec), settings, { buildKey: "0123456789abcdef", registry });

/** The Pod Security Standard "restricted", as far as these Pods touch it. */
function expectRestricted(pod: {
  securityContext?: object;
  containers: { securityContext?: object }[];
  volumes?: object[];
}) {
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const { securityContext } of pod.containers) {
    expect(securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  }
  const kinds = (pod.volumes ?? [])
    .flatMap((volume) => Object.keys(volume))
    .filter((key) => key !== "name");
  expect(["configMap", "emptyDir", "projected", "secret"]).toEqual(expect.arrayContaining(kinds));
}

describe("the Deployment", () => {
  test("runs the image by digest, as the restricted Pod Security level allows", () => {
    expect(containerOf()).toMatchObject({
      name: "function",
      image: inputs.image,
      imagePullPolicy: "IfNotPresent",
    });
    expectRestricted(podOf().spec!);
    expect(podOf().spec).toMatchObject({
      serviceAccountName: "serverless-function",
      automountServiceAccountToken: false,
    });
  });

  test("selects by four labels, which its Pods have besides the user's", () => {
    const { selector, template } = deploymentOf({ labels: { app: "x" } }).spec!;
    expect(selector.matchLabels).toEqual({
      ...ours,
      "serverless.kyma-project.io/resource": "deployment",
    });
    expect(template.metadata!.labels).toEqual({
      ...selector.matchLabels,
      app: "x",
      "app.kubernetes.io/name": "hello",
    });
    expect(deploymentOf().metadata.labels).toEqual({ ...ours, team: "a" });
  });

  test("asks the Function for its health", () => {
    const { startupProbe, readinessProbe, livenessProbe } = containerOf();
    expect(startupProbe).toMatchObject({
      httpGet: { path: "/healthz", port: 8080 },
      periodSeconds: 1,
      failureThreshold: 150,
    });
    expect(readinessProbe!.failureThreshold).toBeGreaterThan(1);
    expect(livenessProbe).toMatchObject({
      periodSeconds: 5,
      timeoutSeconds: 4,
      failureThreshold: 3,
    });
  });

  test("never has fewer Pods than desired while it rolls out", () => {
    expect(deploymentOf().spec!.strategy!.rollingUpdate!.maxUnavailable).toBe(0);
  });

  test.each([
    ["the default preset", {}, "400m", "1Gi"],
    ["a profile", { resourceConfiguration: { function: { profile: "XS" } } }, "50m", "128Mi"],
    [
      "own resources",
      {
        resourceConfiguration: {
          function: { resources: { requests: { cpu: "70m" }, limits: { memory: "90Mi" } } },
        },
      },
      "70m",
      "90Mi",
    ],
  ])("takes its resources from %s", (_, spec, cpu, memory) => {
    expect(containerOf(spec).resources).toMatchObject({ requests: { cpu }, limits: { memory } });
  });

  test("mounts Secrets, each under a name that a volume may have", () => {
    const secretMounts = [{ secretName: "my.secret", mountPath: "/keys" }];
    const { volumes, containers } = podOf({ secretMounts }).spec!;
    expect(volumes![1]).toMatchObject({
      secret: { secretName: "my.secret", defaultMode: 438, optional: false },
    });
    expect(containers[0]!.volumeMounts![1]).toEqual({
      name: volumes![1]!.name,
      mountPath: "/keys",
      readOnly: true,
    });
    expect(volumes![1]!.name).toMatch(/^[-a-z0-9]{1,63}$/);
    expect(volumes![0]).toEqual({ name: "tmp-dir", emptyDir: { sizeLimit: "100Mi" } });
  });

  test("merges security contexts field by field", () => {
    const spec = {
      podSecurityContext: { runAsUser: 2000 },
      containerSecurityContext: { readOnlyRootFilesystem: false },
    };
    expect(podOf(spec).spec!.securityContext).toMatchObject({
      runAsUser: 2000,
      runAsNonRoot: true,
    });
    expect(containerOf(spec).securityContext).toMatchObject({
      readOnlyRootFilesystem: false,
      privileged: false,
    });
  });

  test("says on its Pods what they refer to only if they do", () => {
    const key = "serverless.kyma-project.io/references";
    expect(podOf().metadata!.annotations).not.toHaveProperty([key]);
    const deployment = desiredDeployment(functionOf(), settings, { ...inputs, references: "abc" });
    expect(deployment.spec!.template.metadata!.annotations).toHaveProperty([key], "abc");
  });
});

describe("the Knative Service", () => {
  const variablesOf = (...spec: Parameters<typeof functionOf>) =>
    desiredKService(functionOf(...spec), settings, { ...inputs, revision: 1 }).spec.template.spec
      .containers[0]?.env;

  test("leaves PORT to Knative, which refuses it in a template", () => {
    const names = variablesOf()?.map(({ name }) => name);
    expect(containerOf().env).toContainEqual({ name: "PORT", value: "8080" });
    expect(names).not.toContain("PORT");
    expect(names).toContain("NODE_ENV");
  });

  test("has the user's own PORT, so that the refusal names it", () => {
    const env = [{ name: "PORT", value: "3000" }];
    expect(variablesOf({ env })).toContainEqual({ name: "PORT", value: "3000" });
  });
});

describe("the build Job", () => {
  test("tries once, as the restricted Pod Security level allows, and is cleaned up", () => {
    expect(jobOf().spec).toMatchObject({
      backoffLimit: 0,
      activeDeadlineSeconds: 900,
      ttlSecondsAfterFinished: 600,
    });
    expect(jobOf().metadata.name).toBe("hello-build-0123456789");
    expectRestricted(jobOf().spec!.template.spec!);
    expect(jobOf().spec!.template.metadata).toMatchObject({
      labels: { ...ours, team: "a" },
      annotations: { "sidecar.istio.io/inject": "false" },
    });
  });

  test("gets everything by arguments, with the registry as builders reach it", () => {
    const { args, image } = jobOf().spec!.template.spec!.containers[0]!;
    const flags = Object.fromEntries(
      args!.flatMap((arg, index) => (index % 2 === 0 ? [[arg, args![index + 1]]] : [])),
    );
    const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
    const sums = `${sha256("code")}  handler.js\n${sha256("{}")}  package.json\n`;
    expect(image).toBe("pull.example/spry/builder:1");
    expect(flags).toEqual({
      "--source": "/workspace/src",
      "--runtime": "nodejs24",
      "--base-name": "pull.example/spry/nodejs24:1",
      "--step": "push",
      "--title": "hello",
      "--base": "push.example:5000/spry/nodejs24:1",
      "--destination": "push.example:5000/shop/hello:0123456789abcdef",
      "--dependency-cache": "push.example:5000/shop/dependencies.cache/nodejs24",
      "--plain-registry": "push.example:5000",
      "--source-digest": `sha256:${sha256(sums)}`,
    });
  });

  test("builds on the image that the Function names", () => {
    const { args } = jobOf({ runtimeImageOverride: "else.example/base:2" }).spec!.template.spec!
      .containers[0]!;
    expect(args![args!.indexOf("--base") + 1]).toBe("else.example/base:2");
  });

  test("gets the environment that the operator has configured for builds", () => {
    const buildEnvironment = { HTTPS_PROXY: "http://proxy.example:3128", DOCKER_CONFIG: "/else" };
    const inputs = { buildKey: "0123456789abcdef", registry };
    const job = desiredBuildJob(functionOf(), { ...settings, buildEnvironment }, inputs);
    expect(job.spec!.template.spec!.containers[0]!.env).toEqual([
      { name: "HTTPS_PROXY", value: "http://proxy.example:3128" },
      { name: "DOCKER_CONFIG", value: "/docker" },
    ]);
  });

  test("of a runtime with a builder of its own is done by that, from that language's files", () => {
    const builderImages = { python312: "pull.example/spry/builder-python312:1" };
    const fn = functionOf({ runtime: "python312" });
    const inputs = { buildKey: "0123456789abcdef", registry };
    const job = desiredBuildJob(fn, { ...settings, builderImages }, inputs);
    const { containers, volumes } = job.spec!.template.spec!;
    expect(containers[0]!.image).toBe(builderImages.python312);
    expect(volumes).toContainEqual({
      name: "sources",
      configMap: {
        name: "hello",
        items: [
          { key: "source", path: "handler.py" },
          { key: "dependencies", path: "requirements.txt" },
        ],
      },
    });
  });

  test("of a commit has it fetched first, by who alone sees the credentials", () => {
    const commit = "c".repeat(40);
    const url = "https://git.example/$(HOME)/r.git";
    const auth = { type: "basic", secretName: "login" } as const;
    const gitRepository = { url, reference: "main", baseDir: "/fn/", auth };
    const inputs = { buildKey: "0123456789abcdef", registry, commit };
    const job = desiredBuildJob(functionOf({ source: { gitRepository } }), settings, inputs);
    const { initContainers, containers, volumes } = job.spec!.template.spec!;
    expectRestricted(job.spec!.template.spec!);
    expect(initContainers![0]).toMatchObject({
      name: "repo-fetcher",
      image: containers[0]!.image,
      resources: containers[0]!.resources,
      securityContext: containers[0]!.securityContext,
      args: [
        "--url=https://git.example/$$(HOME)/r.git",
        `--commit=${commit}`,
        "--reference=main",
        "--base-dir=fn",
        "--destination=/workspace/src",
        "--scratch=/workspace/build",
        "--handover=/workspace/handover",
        "--auth=basic",
        "--credentials=/workspace/git-credentials",
      ],
    });
    expect(containers[0]!.args).toEqual(expect.arrayContaining(["--source-revision", commit]));
    expect(containers[0]!.args).not.toContain("--source-digest");
    const all = [...initContainers!, ...containers];
    const mounting = (volume: string) =>
      all.filter((each) => each.volumeMounts!.some(({ name }) => name === volume));
    expect(mounting("git-credentials").map(({ name }) => name)).toEqual(["repo-fetcher"]);
    expect(mounting("credentials").map(({ name }) => name)).toEqual([
      "dependency-fetcher",
      "executor",
    ]);
    expect(volumes!.find(({ name }) => name === "sources")).toHaveProperty("emptyDir");
    expect(volumes!.find(({ name }) => name === "git-credentials")).toMatchObject({
      secret: { secretName: "login", defaultMode: 0o440 },
    });
  });

  const sourceDigest = `sha256:${"e".repeat(64)}`;
  const plain = { [annotations.plainSource]: sourceDigest };
  test.each<[string, Record<string, string>, string[]]>([
    ["is unpacked by the first of its steps", {}, ["dependency-fetcher"]],
    ["without packages is built in one", plain, ["executor"]],
    [
      "of which another one was without",
      { [annotations.plainSource]: digest },
      ["dependency-fetcher"],
    ],
  ])("of an image %s", (_, marks, writing) => {
    const fn = functionOf({ source: { image: `pull.example/shop/hello@${sourceDigest}` } });
    fn.metadata.annotations = marks;
    const inputs = { buildKey: "0123456789abcdef", registry };
    const {
      initContainers = [],
      containers,
      volumes,
    } = desiredBuildJob(fn, settings, inputs).spec!.template.spec!;
    const all = [...initContainers, ...containers];
    const isWritable = ({ volumeMounts = [] }: (typeof all)[number]) =>
      volumeMounts.some(({ name, readOnly }) => name === "sources" && !readOnly);
    expect(all.filter(isWritable).map(({ name }) => name)).toEqual(writing);
    expect(volumes!.find(({ name }) => name === "sources")).toHaveProperty("emptyDir");
    expect(containers[0]!.args).toEqual(
      expect.arrayContaining(["--source-image", `push.example:5000/shop/hello@${sourceDigest}`]),
    );
  });

  describe("that may meet foreign code", () => {
    const specOf = (dependencies: string, runtime: "nodejs24" | "python312" = "nodejs24") =>
      desiredBuildJob(
        functionOf({ source: { inline: { source: "code", dependencies } }, runtime }),
        settings,
        { buildKey: "0123456789abcdef", registry },
      ).spec!.template.spec!;

    test("runs it in a container without Secrets, between those that have them", () => {
      const spec = specOf('{"dependencies":{"x":"1"}}');
      expectRestricted(spec);
      const [fetch, scripts] = spec.initContainers!;
      const [push] = spec.containers;
      const lastOf = (container: typeof push) => container!.args!.slice(-2).join(" ");
      expect([fetch, scripts, push].map(lastOf)).toEqual([
        "--step fetch",
        "--step scripts",
        "--step push",
      ]);
      const secret = spec.volumes!.filter((volume) => volume.secret ?? volume.projected);
      const secrets = secret.map(({ name }) => name);
      expect(secrets).toEqual(["credentials", "registry-config"]);
      const mounts = scripts!.volumeMounts!;
      expect(mounts.filter(({ name }) => secrets.includes(name))).toEqual([]);
      expect(scripts!.env!.map(({ name }) => name)).not.toContain("DOCKER_CONFIG");
      // It could tell the last step what to push, otherwise.
      expect(mounts.find(({ name }) => name === "handover")).toMatchObject({ readOnly: true });
    });

    test.each([
      ["", false],
      ["{}", false],
      ['{"name":"x","dependencies":{},"devDependencies":{"a":"1"}}', false],
      ['{"scripts":{"build":"tsc"}}', true],
      ['{"optionalDependencies":{"a":"1"}}', true],
      ["{", true],
      ["null", true],
    ])("as JavaScript with %j: %s", (dependencies, expected) =>
      expect(specOf(dependencies).initContainers !== undefined).toBe(expected),
    );

    test("as JavaScript that uses a package which is added to its dependencies: true", () => {
      const fn = functionOf({ source: { inline: { source: 'require("axios")' } } });
      const job = desiredBuildJob(fn, settings, { buildKey: "0123456789abcdef", registry });
      expect(job.spec!.template.spec!.initContainers).toHaveLength(2);
    });

    test.each([
      ["", false],
      ["# nothing\n\n", false],
      ["# one\nrequests\n", true],
    ])("as Python with %j: %s", (dependencies, expected) =>
      expect(specOf(dependencies, "python312").initContainers !== undefined).toBe(expected),
    );
  });

  test("mounts the code as the files that the runtime expects", () => {
    const volume = jobOf().spec!.template.spec!.volumes!.find(({ name }) => name === "sources");
    expect(volume!.configMap!.items).toEqual([
      { key: "source", path: "handler.js" },
      { key: "dependencies", path: "package.json" },
    ]);
  });
});

test("the ConfigMap holds code and dependencies, of which there are always some", () => {
  expect(desiredConfigMap(functionOf()).data).toEqual({ source: "code", dependencies: "{}" });
});

test("the Service leads from port 80 to the Pods, and to nothing else's", () => {
  const service = desiredService(functionOf());
  expect(service.metadata.name).toBe("hello");
  expect(service.spec).toMatchObject({
    type: "ClusterIP",
    ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
  });
  expect(service.spec!.selector).toEqual(deploymentOf().spec!.selector.matchLabels);
  expect(service.metadata.annotations).toMatchObject({
    "prometheus.io/scrape": "true",
    "prometheus.io/port": "8080",
    "prometheus.io/path": "/metrics",
  });
});

describe("the HorizontalPodAutoscaler", () => {
  test.each([
    ["without bounds", undefined],
    ["with one number as both bounds", { minReplicas: 2, maxReplicas: 2 }],
  ])("is not there %s", (_, scaleConfig) => {
    expect(desiredAutoscaler(functionOf(scaleConfig ? { scaleConfig } : {}), 50)).toBeUndefined();
  });

  test("scales the Function itself", () => {
    const autoscaler = desiredAutoscaler(
      functionOf({ scaleConfig: { minReplicas: 1, maxReplicas: 4 } }),
      50,
    );
    expect(autoscaler!.spec).toMatchObject({
      scaleTargetRef: {
        apiVersion: "serverless.kyma-project.io/v1alpha2",
        kind: "Function",
        name: "hello",
      },
      minReplicas: 1,
      maxReplicas: 4,
      metrics: [
        {
          type: "Resource",
          resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
        },
      ],
    });
  });
});
