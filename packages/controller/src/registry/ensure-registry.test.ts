import { createApiServer } from "@spry/apiserver";
import { names } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { settings } from "../testing/objects.ts";
import { ensureRegistry } from "./ensure-registry.ts";

const namespace = "kyma-system";
const login = { username: "u", password: "p" };
const logins = { namespace: () => login, build: () => login };
const internalRegistry = {
  pushAddress: "push:5000",
  pullAddress: "localhost:32137",
  logins,
};
const encode = (text: string) => Buffer.from(text).toString("base64");

describe("the Secrets by which an installation's own images are pulled", () => {
  let client: KubeClient;
  beforeEach(async () => {
    const api = await createApiServer({ dataDir: ":memory:" });
    onTestFinished(() => api.close());
    client = new KubeClient(api.transport(), { fieldManager: "test" });
    await client.apply(resources.namespaces, { metadata: { name: namespace } });
  });
  const ensure = () => {
    const base = { ...settings, imagePullSecrets: ["mine"] };
    return ensureRegistry(
      { client, base, namespace, internalRegistry, chosen: () => undefined },
      {},
    );
  };
  const auths = async (name: string) => {
    const { data } = await client.get(resources.secrets, { namespace, name });
    const text = Buffer.from(data?.[".dockerconfigjson"] ?? "", "base64").toString();
    return (JSON.parse(text) as { auths: Record<string, object> }).auths;
  };

  test("reach builds with the platform's own, and cannot stand in its place", async () => {
    const theirs = { auth: "dTpw" };
    const config = { auths: { "r.example": theirs, "push:5000": { auth: "no" } } };
    await client.create(resources.secrets, {
      metadata: { namespace, name: "mine" },
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": encode(JSON.stringify(config)) },
    });
    expect(await ensure()).toEqual({ address: "internal", warnings: [], watched: true });
    expect(await auths(names.internalRegistrySecret)).toEqual({
      "r.example": theirs,
      "push:5000": { auth: encode("u:p") },
      "localhost:32137": { auth: encode("u:p") },
    });
    expect(Object.keys(await auths(names.registrySecret))).toEqual([
      "push:5000",
      "localhost:32137",
    ]);
  });

  test.each([
    ["that are not there", undefined],
    ["without a docker configuration", { other: encode("x") }],
    ["with one that is none", { ".dockerconfigjson": encode("7") }],
  ])("%s are reported", async (_, data) => {
    if (data)
      await client.create(resources.secrets, { metadata: { namespace, name: "mine" }, data });
    expect(await ensure()).toMatchObject({
      warnings: [
        expect.stringContaining("Secret kyma-system/mine with a .dockerconfigjson not found"),
      ],
    });
  });
});
