/** What the webhooks refuse, in Knative's words, and what they complete. */
import { knative } from "@spry/function";
import { type KubeObject, type Pod, type UnknownObject } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { kservice, review } from "../testing/platform.ts";
import { featureSettings } from "../settings/feature-settings.ts";
import { servingDefaultingPath, servingValidationPath } from "./admission.ts";

const image = "registry.example/hello";
const creator = "serving.knative.dev/creator";
const lastModifier = "serving.knative.dev/lastModifier";

/** The objects as they arrive at the validation webhook: with their defaults. */
async function defaulted(object: KubeObject, oldObject?: KubeObject): Promise<UnknownObject> {
  const more = oldObject ? { oldObject } : {};
  const answer = await review(servingDefaultingPath, knative.services, object, more);
  const result = structuredClone(object) as UnknownObject;
  const patch = JSON.parse(Buffer.from(answer.patch ?? "W10=", "base64").toString()) as {
    path: string;
    value: unknown;
  }[];
  for (const { path, value } of patch) {
    if (path === "/spec") result["spec"] = value;
    else result.metadata.annotations = value as Record<string, string>;
  }
  return result;
}

/** The text of the refusal; empty when the Service is accepted. */
async function refusal(object: KubeObject, oldObject?: KubeObject): Promise<string> {
  const before = oldObject ? await defaulted(oldObject) : undefined;
  // An update keeps the annotations that it does not mention.
  if (before) object.metadata.annotations = { ...before.metadata.annotations };
  const complete = await defaulted(object, before);
  const more = before ? { oldObject: before } : {};
  const answer = await review(servingValidationPath, knative.services, complete, more);
  return answer.allowed ? "" : (answer.status?.message ?? "?").replace("validation failed: ", "");
}

const container = (more: object) => kservice("hello", { containers: [{ image, ...more }] });
const annotated = (annotations: Record<string, string>) => {
  const service = kservice("hello");
  service.spec.template.metadata = { annotations };
  return service;
};
const traffic = (...targets: object[]) => kservice("hello", {}, { traffic: targets });
const at = "spec.template.spec";
const one = `${at}.containers[0]`;
const notes = "spec.template.metadata.annotations";
const scale = "autoscaling.knative.dev";

test.each([
  ["a plain one", kservice("hello")],
  ["a tag", container({ image: "localhost:5000/a/b:v1" })],
  ["a port of HTTP/2", container({ ports: [{ name: "h2c", containerPort: 9000 }] })],
  [
    "a Secret",
    kservice("hello", {
      containers: [{ image, volumeMounts: [{ name: "s", mountPath: "/etc/s" }] }],
      volumes: [{ name: "s", secret: { secretName: "s" } }],
    }),
  ],
  [
    "an empty directory that is written to",
    kservice("hello", {
      containers: [{ image, volumeMounts: [{ name: "d", mountPath: "/data" }] }],
      volumes: [{ name: "d", emptyDir: {} }],
    }),
  ],
  [
    "a sidecar",
    kservice("hello", {
      containers: [
        { image, ports: [{ containerPort: 8080 }] },
        { image, env: [{ name: "PORT", value: "1" }] },
      ],
    }),
  ],
  [
    "a split",
    traffic(
      { latestRevision: true, percent: 90 },
      { revisionName: "hello-00001", percent: 10, tag: "old" },
    ),
  ],
  [
    "scales",
    annotated({
      [`${scale}/min-scale`]: "1",
      [`${scale}/maxScale`]: "3",
      [`${scale}/window`]: "6s",
    }),
  ],
  [
    "privileges that are not wanted",
    container({ securityContext: { privileged: false, runAsNonRoot: true } }),
  ],
] as const)("%s is accepted", async (_, service) => {
  expect(await refusal(service)).toBe("");
});

describe("is refused:", () => {
  test.each([
    // Fields that must not be set.
    [
      container({ lifecycle: { preStop: { exec: { command: ["a"] } } } }),
      `must not set the field(s): ${one}.lifecycle`,
    ],
    [container({ stdin: true, tty: true }), `must not set the field(s): ${one}.stdin, ${one}.tty`],
    [
      kservice("hello", { hostNetwork: true, nodeSelector: { a: "b" } }),
      `must not set the field(s): ${at}.hostNetwork, ${at}.nodeSelector`,
    ],
    [
      kservice("hello", { automountServiceAccountToken: true }),
      `must not set the field(s): ${at}.automountServiceAccountToken`,
    ],
    [
      container({ ports: [{ containerPort: 80, hostPort: 80 }] }),
      `must not set the field(s): ${one}.ports.hostPort`,
    ],
    [
      container({ securityContext: { privileged: true } }),
      `must not set the field(s): ${one}.securityContext.privileged`,
    ],
    [
      container({ env: [{ name: "a", valueFrom: { fieldRef: { fieldPath: "x" } } }] }),
      `must not set the field(s): ${one}.env[0].valueFrom.fieldRef`,
    ],
    // Containers.
    [kservice("hello", { containers: [] }), `missing field(s): ${at}.containers`],
    [container({ image: "" }), `missing field(s): ${one}.image`],
    [
      container({ image: "no such:image" }),
      `Failed to parse image reference: ${one}.image\nimage: "no such:image", error: could not parse reference: no such:image`,
    ],
    [container({ name: "queue-proxy" }), `"queue-proxy" is a reserved container name: ${one}.name`],
    [
      container({ env: [{ name: "K_SERVICE", value: "x" }] }),
      `"K_SERVICE" is a reserved environment variable: ${one}.env[0].name`,
    ],
    [
      container({ ports: [{ containerPort: 8012 }] }),
      `invalid value: 8012 is a reserved port: ${one}.ports.containerPort\n8012 is a reserved port, please use a different value`,
    ],
    [
      container({ ports: [{ containerPort: 70000 }] }),
      `expected 0 <= 70000 <= 65535: ${one}.ports.containerPort`,
    ],
    [
      container({ ports: [{ name: "grpc", containerPort: 80 }] }),
      `Port name grpc is not allowed: ${one}.ports\nName must be empty, or one of: 'h2c', 'http1'`,
    ],
    [
      container({ ports: [{ containerPort: 80 }, { containerPort: 81 }] }),
      `more than one container port is set: ${at}.containers[*].ports\nOnly a single port is allowed across all containers`,
    ],
    [
      kservice("hello", { containers: [{ image }, { image }] }),
      `missing field(s): ${at}.containers[*].ports`,
    ],
    [
      container({ securityContext: { runAsUser: -1 } }),
      `expected 0 <= -1 <= 2147483647: ${one}.securityContext.runAsUser`,
    ],
    [
      container({ readinessProbe: { httpGet: { path: "/" }, exec: { command: ["a"] } } }),
      `expected exactly one, got both: ${one}.readinessProbe.exec, ${one}.readinessProbe.httpGet`,
    ],
    [
      container({ readinessProbe: { failureThreshold: 2, timeoutSeconds: 3 } }),
      `failureThreshold is disallowed when periodSeconds is zero: ${one}.readinessProbe.failureThreshold\ntimeoutSeconds is disallowed when periodSeconds is zero: ${one}.readinessProbe.timeoutSeconds`,
    ],
    [
      container({ volumeMounts: [{ name: "v", mountPath: "/dev" }] }),
      `mountPath "/dev" is a reserved path: ${one}.volumeMounts[0].mountPath\nvolumeMount has no matching volume: ${one}.volumeMounts[0].name`,
    ],
    [
      kservice("hello", { volumes: [{ name: "v", secret: { secretName: "s" } }] }),
      `volume with name "v" not mounted: ${at}.volumes[0].name`,
    ],
    [
      kservice("hello", { initContainers: [{ image, name: "i" }] }),
      `pod spec support for init-containers is off, but found 1 init containers: ${at}.initContainers`,
    ],
    // Limits.
    [
      kservice("hello", { timeoutSeconds: 3606 }),
      `expected 0 <= 3606 <= 3605: ${at}.timeoutSeconds`,
    ],
    [
      kservice("hello", { containerConcurrency: 1001 }),
      `expected 0 <= 1001 <= 1000: ${at}.containerConcurrency`,
    ],
    [
      kservice("hello", { containerConcurrency: -1 }),
      `expected 0 <= -1 <= 1000: ${at}.containerConcurrency`,
    ],
    [
      kservice("hello", { serviceAccountName: "@foo" }),
      `invalid value: @foo: ${at}.serviceAccountName\na lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ],
    // Traffic.
    [
      traffic({ latestRevision: true, percent: 50 }),
      "Traffic targets sum to 50, want 100: spec.traffic",
    ],
    [
      traffic(
        { latestRevision: true, percent: 100, tag: "a" },
        { revisionName: "hello-00001", tag: "a" },
      ),
      'Multiple definitions for "a": spec.traffic[0].tag, spec.traffic[1].tag',
    ],
    [
      traffic({ configurationName: "hello", percent: 100 }),
      "must not set the field(s): spec.traffic[0].configurationName",
    ],
    [
      traffic({ revisionName: "hello-00001", latestRevision: true, percent: 100 }),
      'may not set revisionName "hello-00001" when latestRevision is true: spec.traffic[0].latestRevision',
    ],
    [
      traffic({ percent: 101 }),
      "Traffic targets sum to 101, want 100: spec.traffic\nexpected 0 <= 101 <= 100: spec.traffic[0].percent",
    ],
    [traffic({ percent: 100, url: "http://a" }), "must not set the field(s): spec.traffic[0].url"],
    // Scales.
    [
      annotated({ [`${scale}/min-scale`]: "many" }),
      `invalid value: many: ${notes}.${scale}/min-scale`,
    ],
    [
      annotated({ [`${scale}/min-scale`]: "3", [`${scale}/max-scale`]: "2" }),
      `max-scale=2 is less than min-scale=3: ${notes}.${scale}/max-scale, ${notes}.${scale}/min-scale`,
    ],
    [
      annotated({ [`${scale}/target`]: "0" }),
      `target 0 should be at least 0.01: ${notes}.${scale}/target`,
    ],
    [
      annotated({ [`${scale}/window`]: "5s" }),
      `expected 6s <= 5s <= 1h0m0s: ${notes}.${scale}/window`,
    ],
    [annotated({ [`${scale}/metric`]: "cpu" }), `invalid value: cpu: ${notes}.${scale}/metric`],
    [
      annotated({ [`${scale}/class`]: "x.autoscaling.knative.dev" }),
      `invalid value: x.autoscaling.knative.dev: ${notes}.${scale}/class`,
    ],
    [
      annotated({ [`${scale}/initial-scale`]: "0" }),
      `invalid value: 0: ${notes}.${scale}/initial-scale=0 not allowed by cluster`,
    ],
    [
      annotated({ [`${scale}/activation-scale`]: "1" }),
      `activation-scale=1 must be greater than 1: ${notes}.${scale}/activation-scale`,
    ],
    [
      annotated({ [`${scale}/target-burst-capacity`]: "-2" }),
      `invalid value: -2: ${notes}.${scale}/target-burst-capacity`,
    ],
    [
      annotated({ "serving.knative.dev/progress-deadline": "1.5s" }),
      `progress-deadline=1.5s is not at second precision: ${notes}.serving.knative.dev/progress-deadline`,
    ],
  ] as const)("%#", async (service, text) => {
    expect(await refusal(service)).toBe(text);
  });

  test("an autoscaling annotation outside of the template", async () => {
    const service = kservice("hello");
    service.metadata.annotations = { [`${scale}/min-scale`]: "1" };
    expect(await refusal(service)).toBe(
      `invalid key name "${scale}/min-scale": metadata.annotations\n` +
        'autoscaling annotations must be put under "spec.template.metadata.annotations" to work',
    );
  });

  test("a name that cannot be a host's", async () => {
    expect(await refusal(kservice("9lives"))).toMatch(
      /^not a DNS 1035 label: \[.*\]: metadata.name$/,
    );
  });
});

describe("config-features", () => {
  const initContainers = [{ image, name: "first" }];
  const own = { name: "who", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } };
  test.each([
    ["init-containers", { initContainers }],
    ["nodeselector", { nodeSelector: { disk: "fast" } }],
    ["tolerations", { tolerations: [{ key: "gpu", operator: "Exists" }] }],
    ["securitycontext", { securityContext: { runAsUser: 1000, fsGroup: 7 } }],
    ["fieldref", { containers: [{ image, env: [own] }] }],
    ["dnspolicy", { dnsPolicy: "Default" }],
    [
      "volumes-hostpath",
      {
        containers: [{ image, volumeMounts: [{ name: "h", mountPath: "/h" }] }],
        volumes: [{ name: "h", hostPath: { path: "/h" } }],
      },
    ],
  ])("kubernetes.podspec-%s allows what is refused without it", async (feature, spec) => {
    const service = await defaulted(kservice("hello", spec));
    const features = featureSettings({ [`kubernetes.podspec-${feature}`]: "enabled" });
    const before = await review(servingValidationPath, knative.services, service);
    const after = await review(servingValidationPath, knative.services, service, {
      settings: { features },
    });
    expect([before.allowed, after.allowed, after.status?.message]).toEqual([
      false,
      true,
      undefined,
    ]);
  });

  test("a claim is read only as long as only that is allowed", async () => {
    const service = await defaulted(
      kservice("hello", {
        containers: [{ image, volumeMounts: [{ name: "v", mountPath: "/v" }] }],
        volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }],
      }),
    );
    const flag = "kubernetes.podspec-persistent-volume";
    const features = featureSettings({ [`${flag}-claim`]: "Enabled" });
    const answer = await review(servingValidationPath, knative.services, service, {
      settings: { features },
    });
    expect(answer.status?.message).toContain(
      "Persistent volume write support is disabled, but found persistent volume claim data that is not read-only",
    );
  });

  test("multi-container can be switched off", async () => {
    const containers = [{ image, ports: [{ containerPort: 80 }] }, { image }];
    const service = await defaulted(kservice("hello", { containers }));
    const features = featureSettings({ "multi-container": "disabled" });
    const answer = await review(servingValidationPath, knative.services, service, {
      settings: { features },
    });
    expect(answer.status?.message).toContain("multi-container is off, but found 2 containers");
  });
});

describe("a template is tried before it is accepted", () => {
  const tried = kservice("hello", { containers: [{ image, name: "&wrong" }] });
  const tryPod = async ({ spec }: Pod) =>
    spec?.containers[0]?.name === "&wrong" ? "Pod is invalid: name" : undefined;

  test.each([
    ["strict", false],
    ["enabled", false],
    ["no", true],
  ])("when the annotation says %s: accepted %s", async (mode, isAccepted) => {
    tried.metadata.annotations = { "features.knative.dev/podspec-dryrun": mode };
    const service = await defaulted(tried);
    const answer = await review(servingValidationPath, knative.services, service, { tryPod });
    expect([answer.allowed, answer.status?.message]).toEqual([
      isAccepted,
      isAccepted
        ? undefined
        : "validation callback failed: dry run failed with Pod is invalid: name: spec.template",
    ]);
  });
});

describe("a Revision's name that the user brings", () => {
  const named = (name: string, more: object = {}) => {
    const service = kservice("hello", more);
    service.spec.template.metadata = { name };
    return service;
  };

  test("begins with that of the Service", async () => {
    expect(await refusal(named("other-1"))).toBe(
      'invalid value: "other-1" must have prefix "hello-": spec.template.metadata.name',
    );
    expect(await refusal(named("hello-1"))).toBe("");
  });

  test("changes with the template", async () => {
    const text = await refusal(named("hello-1", { timeoutSeconds: 20 }), named("hello-1"));
    expect(text).toMatch(
      /^Saw the following changes without a name change \(-old \+new\): spec.template.metadata.name\n/,
    );
    expect(await refusal(named("hello-2", { timeoutSeconds: 20 }), named("hello-1"))).toBe("");
  });
});

test("a Revision cannot be changed", async () => {
  const revision = (timeoutSeconds: number) => ({
    metadata: { name: "hello-00001", namespace: "shop" },
    spec: { containers: [{ name: "a", image }], timeoutSeconds },
  });
  const answer = await review(servingValidationPath, knative.revisions, revision(2), {
    oldObject: revision(1),
  });
  expect(answer.status?.message).toBe(
    'validation failed: Immutable fields changed (-old +new): spec\n{"timeoutSeconds":2}',
  );
});

test("who creates and who changes a Service is noted, and cannot be forged", async () => {
  const created = await defaulted(kservice("hello"));
  expect(created.metadata.annotations).toMatchObject({ [creator]: "jane", [lastModifier]: "jane" });
  const forged = structuredClone(created) as KubeObject;
  forged.metadata.annotations = { ...forged.metadata.annotations, [creator]: "joe" };
  const answer = await review(servingValidationPath, knative.services, forged, {
    oldObject: created,
  });
  expect(answer.status?.message).toBe(
    `validation failed: annotation value is immutable: metadata.annotations.${creator}`,
  );
});

test("a container gets a name, a probe and read-only mounts; a Service gets traffic", async () => {
  const service = await defaulted(
    kservice("hello", {
      containers: [{ image, volumeMounts: [{ name: "s", mountPath: "/s" }] }],
      volumes: [{ name: "s", secret: { secretName: "s" } }],
    }),
  );
  expect(service["spec"]).toMatchObject({
    template: {
      spec: {
        timeoutSeconds: 300,
        containerConcurrency: 0,
        enableServiceLinks: false,
        containers: [
          {
            name: "user-container",
            readinessProbe: { tcpSocket: { port: 0 }, successThreshold: 1 },
            volumeMounts: [{ name: "s", mountPath: "/s", readOnly: true }],
          },
        ],
      },
    },
    traffic: [{ latestRevision: true, percent: 100 }],
  });
});

test.each([null, 7, "text", [], { spec: null }, { metadata: {}, spec: {} }])(
  "%j does no harm",
  async (object) => {
    for (const path of [servingDefaultingPath, servingValidationPath] as const) {
      const answer = await review(path, knative.services, object as unknown as KubeObject);
      expect(typeof answer.allowed).toBe("boolean");
    }
  },
);
