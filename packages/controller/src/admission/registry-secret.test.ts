import { type Secret } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { type AdmissionRequest } from "@spry/kube";
import { completeRegistrySecret } from "./registry-secret.ts";

const encode = (text: string) => Buffer.from(text).toString("base64");
const given = {
  username: encode("me"),
  password: encode("it's secret"),
  serverAddress: encode("https://r.example/v1/"),
  registryAddress: encode("r.example/team"),
};
const auth = encode("me:it's secret");
const made = encode(JSON.stringify({ auths: { "https://r.example/v1/": { auth } } }));

function secretOf(more: Partial<Secret> = {}): Secret {
  return {
    metadata: {
      name: "serverless-registry-config",
      labels: { "serverless.kyma-project.io/remote-registry": "config" },
    },
    type: "kubernetes.io/dockerconfigjson",
    data: given,
    ...more,
  };
}

function ask(object: unknown, more: Partial<AdmissionRequest> = {}) {
  const kind = { group: "", version: "v1", kind: "Secret" };
  const request = { uid: "u", operation: "CREATE" as const, kind, name: "s", object, ...more };
  const { patch, ...answer } = completeRegistrySecret(request);
  return { ...answer, patch: patch && JSON.parse(Buffer.from(patch, "base64").toString()) };
}

describe("a Secret that chooses a registry", () => {
  test.each<[string, Secret]>([
    ["without a docker configuration", secretOf()],
    [
      "with that of an old password",
      secretOf({
        data: {
          ...given,
          ".dockerconfigjson": encode(
            JSON.stringify({ auths: { "https://r.example/v1/": { auth: encode("me:old") } } }),
          ),
        },
      }),
    ],
    ["with one that is none", secretOf({ data: { ...given, ".dockerconfigjson": encode("{") } })],
  ])("%s gets one", (_, secret) => {
    const patch = [{ op: "add", path: "/data/.dockerconfigjson", value: made }];
    expect(ask(secret)).toMatchObject({ allowed: true, patchType: "JSONPatch", patch });
  });

  test("may be written as text", () => {
    const { data: _data, ...rest } = secretOf();
    const stringData = Object.fromEntries(
      Object.entries(given).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
    );
    expect(ask({ ...rest, stringData }).patch).toEqual([
      { op: "add", path: "/data", value: { ".dockerconfigjson": made } },
    ]);
  });

  test("keeps a docker configuration that says the same, and more", () => {
    const auths = { "https://r.example/v1/": { auth }, "other.example": { auth } };
    const data = { ...given, ".dockerconfigjson": encode(JSON.stringify({ auths })) };
    expect(ask(secretOf({ data }))).toEqual({ allowed: true, patch: undefined });
  });

  test("of another type is warned of", () => {
    expect(ask(secretOf({ type: "Opaque" })).warnings).toEqual([
      "type: nodes pull only with Secrets of the type kubernetes.io/dockerconfigjson",
    ]);
  });

  test("that lacks something is refused by the names of what it lacks, not by what it holds", () => {
    const { username: _username, serverAddress: _serverAddress, ...data } = given;
    const { allowed, status } = ask(secretOf({ data }));
    expect([allowed, status?.code]).toEqual([false, 422]);
    expect(status?.message).toBe(
      'Secret "s" is invalid: [data[username]: Required value: a Secret with the label serverless.kyma-project.io/remote-registry=config needs it, ' +
        "data[serverAddress]: Required value: a Secret with the label serverless.kyma-project.io/remote-registry=config needs it]",
    );
  });

  const lacking = secretOf({ data: {} });
  test.each<[string, unknown, Partial<AdmissionRequest>]>([
    ["that is stored and lacks something may get labels", lacking, { oldObject: lacking }],
    [
      "that is being deleted",
      { ...lacking, metadata: { ...lacking.metadata, deletionTimestamp: "now" } },
      {},
    ],
    ["without the label is left alone", secretOf({ metadata: { name: "s" } }), {}],
    ["that is none is left to the schema", "x", {}],
    ["whose data is none is left to the schema", { ...secretOf(), data: 7 }, {}],
  ])("%s", (_, object, more) => {
    expect(ask(object, { operation: "UPDATE", ...more })).toEqual({
      allowed: true,
      patch: undefined,
    });
  });
});
