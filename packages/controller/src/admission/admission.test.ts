import { type Function } from "@spry/function";
import { type Status } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { functionOf, settings } from "../testing/objects.ts";
import { admissionConfigurations } from "./admission-configurations.ts";
import { type AdmissionRequest, type AdmissionResponse } from "@spry/kube";
import { createAdmission } from "./admission.ts";

const admission = createAdmission(settings);
const kind = { group: "serverless.kyma-project.io", version: "v1alpha2", kind: "Function" };

async function ask(
  path: string,
  request: Partial<AdmissionRequest>,
  asked = admission,
): Promise<AdmissionResponse & { uid: string; status?: Status }> {
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { uid: "u", operation: "CREATE", kind, name: "hello", ...request },
  };
  const answer = await asked.fetch(
    new Request(`https://x${path}`, { method: "POST", body: JSON.stringify(review) }),
  );
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { response: never }).response;
}

const validate = (request: Partial<AdmissionRequest>) => ask("/validation/function", request);
const patchOf = async (
  object: unknown,
  more: Partial<AdmissionRequest> = {},
  asked = admission,
) => {
  const { patch } = await ask("/defaulting/functions?timeout=10s", { object, ...more }, asked);
  return patch === undefined
    ? undefined
    : (JSON.parse(Buffer.from(patch, "base64").toString()) as unknown);
};

describe("defaulting", () => {
  test("adds what is left out", async () => {
    expect(await patchOf(functionOf())).toEqual([
      { op: "add", path: "/spec/runtime", value: "nodejs24" },
      { op: "add", path: "/spec/replicas", value: 1 },
    ]);
  });

  test("moves replicas into the bounds", async () => {
    const scaleConfig = { minReplicas: 2, maxReplicas: 4 };
    expect(await patchOf(functionOf({ runtime: "nodejs22", replicas: 1, scaleConfig }))).toEqual([
      { op: "replace", path: "/spec/replicas", value: 2 },
    ]);
    expect(
      await patchOf(functionOf({ runtime: "nodejs22", replicas: 3, scaleConfig })),
    ).toBeUndefined();
  });

  describe("with bounds that the operator has chosen", () => {
    const defaultScaleConfig = { minReplicas: 0, maxReplicas: 5 };
    const chosen = createAdmission({ ...settings, defaultScaleConfig });
    const onDemand = [{ op: "add", path: "/spec/scaleConfig", value: defaultScaleConfig }];
    const own = { minReplicas: 1, maxReplicas: 1 };
    test.each<[string, object, "CREATE" | "UPDATE", object[] | undefined]>([
      ["a new Function gets them", { replicas: 1 }, "CREATE", onDemand],
      ["one that has its own keeps them", { replicas: 1, scaleConfig: own }, "CREATE", undefined],
      ["one with several replicas keeps these", { replicas: 3 }, "CREATE", undefined],
      ["one that has been stopped stays so", { replicas: 0 }, "CREATE", undefined],
      ["one that exists is left as it is", { replicas: 1 }, "UPDATE", undefined],
    ])("%s", async (_, spec, operation, expected) => {
      const object = functionOf({ runtime: "nodejs24", ...spec });
      expect(await patchOf(object, { operation }, chosen)).toEqual(expected);
    });
  });

  test.each([
    ["nothing", undefined],
    ["a text", "x"],
    ["no spec", { metadata: {} }],
    ["a list as spec", { metadata: {}, spec: [] }],
  ])("leaves %s to the schema", async (_, object) => expect(await patchOf(object)).toBeUndefined());

  test("does not touch a status", async () => {
    expect(
      await patchOf(functionOf(), { operation: "UPDATE", subResource: "status" }),
    ).toBeUndefined();
  });
});

describe("validation", () => {
  test("lets a good Function pass", async () => {
    expect(await validate({ object: functionOf({ runtime: "nodejs24" }) })).toEqual({
      uid: "u",
      allowed: true,
    });
  });

  test("warns of a deprecated runtime, and of one that is not installed", async () => {
    expect((await validate({ object: functionOf({ runtime: "nodejs20" }) })).warnings).toEqual([
      "spec.runtime: runtime nodejs20 is deprecated and will be removed: use nodejs24",
    ]);
    expect((await validate({ object: functionOf({ runtime: "python312" }) })).warnings).toEqual([
      "spec.runtime: python312 is not installed on this platform",
    ]);
  });

  test("refuses with every field named", async () => {
    const object = functionOf({ runtime: "nodejs18", env: [{ name: "FUNC_PORT" }] });
    const { allowed, status } = await validate({ object });
    expect(allowed).toBe(false);
    expect(status).toMatchObject({ code: 422, reason: "Invalid" });
    expect(status!.message).toMatch(
      /^Function.serverless.kyma-project.io "hello" is invalid: \[spec.runtime: .*nodejs24.*, spec.env\[0\].name: /,
    );
    expect(status!.details!.causes!.map(({ field }) => field)).toEqual([
      "spec.runtime",
      "spec.env[0].name",
    ]);
  });

  test("lets labels be put on a Function that would be refused today", async () => {
    const old = functionOf({ runtime: "nodejs18" });
    const object = { ...old, metadata: { ...old.metadata, labels: { a: "b" } } };
    expect(await validate({ operation: "UPDATE", object, oldObject: old })).toMatchObject({
      allowed: true,
    });
  });
});

describe("schedules", () => {
  const scheduled = (cron: string, more: object = {}, timeZone?: string) =>
    functionOf({ ...more, schedules: [{ name: "nightly", cron, ...(timeZone && { timeZone }) }] });

  test.each([
    ["every day", undefined, /schedules\[0\]\.cron: .*schedule nightly: "every day" is not a cron/],
    ["61 * * * *", undefined, /minute "61": 61 is not from 0 to 59/],
    ["0 0 30 2 *", undefined, /is never due/],
    ["@daily", "Europe/Berln", /schedules\[0\]\.timeZone: .*"Europe\/Berln" is not a time zone/],
  ])("that never run are refused: %j, %j", async (cron, timeZone, message) => {
    const { allowed, status } = await validate({ object: scheduled(cron, {}, timeZone) });
    expect({ allowed, message: status?.message }).toEqual({
      allowed: false,
      message: expect.stringMatching(message) as string,
    });
  });

  test("that are stored stay, whatever else of the Function is changed, and no other takes their place", async () => {
    const oldObject = scheduled("every day");
    const update = (object: Function) => validate({ operation: "UPDATE", object, oldObject });
    expect(await update(scheduled("every day", { replicas: 2 }))).toMatchObject({ allowed: true });
    expect(await update(scheduled("@daily"))).toMatchObject({ allowed: true });
    expect(await update(scheduled("every hour"))).toMatchObject({ allowed: false });
    const worse = scheduled("every day", { runtime: "nodejs18" });
    expect(await update(worse)).toMatchObject({ allowed: false });
  });
});

describe("what is no AdmissionReview", () => {
  test.each<[string, number, string, RequestInit]>([
    ["an unknown path", 404, "/x", { method: "POST", body: "{}" }],
    ["a path of every object", 404, "/constructor", { method: "POST", body: "{}" }],
    ["a GET", 405, "/validation/function", {}],
    ["no JSON", 400, "/validation/function", { method: "POST", body: "no" }],
    ["null", 400, "/validation/function", { method: "POST", body: "null" }],
    ["another kind", 400, "/validation/function", { method: "POST", body: '{"kind":"Pod"}' }],
    [
      "too much",
      413,
      "/validation/function",
      { method: "POST", body: "x".repeat(9 * 1024 * 1024) },
    ],
  ])("%s", async (_, status, path, init) => {
    expect((await admission.fetch(new Request(`https://x${path}`, init))).status).toBe(status);
  });
});

test("the configurations ask about Functions only, not about their status, and refuse when no webhook answers", () => {
  const [mutating, validating] = admissionConfigurations({
    caBundle: "Q0E=",
    url: "https://127.0.0.1:1234",
  });
  expect(mutating.metadata.name).toBe("defaulting.webhook.serverless.kyma-project.io");
  expect(validating.metadata.name).toBe("validation.webhook.serverless.kyma-project.io");
  expect(mutating.webhooks![0]).toMatchObject({
    failurePolicy: "Fail",
    timeoutSeconds: 10,
    clientConfig: { url: "https://127.0.0.1:1234/defaulting/functions" },
  });
  expect(validating.webhooks![0]!.rules).toMatchObject([
    { resources: ["functions"], operations: ["CREATE", "UPDATE"] },
  ]);
  const service = { name: "serverless-webhook", namespace: "kyma-system" };
  const [onCluster] = admissionConfigurations({ caBundle: "Q0E=", service });
  expect(onCluster.webhooks![0]!.clientConfig.service).toEqual({
    ...service,
    port: 443,
    path: "/defaulting/functions",
  });
});
