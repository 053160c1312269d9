import { type ApiServer, createApiServer } from "@spry/apiserver";
import { KubeClient, type Pod, pullCredentials, resources } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const secrets: Record<string, Record<string, unknown>> = {
  json: {
    auths: {
      "registry.example": { auth: base64("all:one:two") },
      "https://registry.example/team/app": { username: "team", password: "p" },
      "*.mirror.example:5000": { auth: base64("glob:p") },
      "https://index.docker.io/v1/": { auth: base64("hub:p") },
      "broken.example": { auth: "" },
    },
  },
};
const data: Record<string, Record<string, string>> = {
  json: { ".dockerconfigjson": base64(JSON.stringify(secrets["json"])) },
  cfg: { ".dockercfg": base64(JSON.stringify({ "old.example": { auth: base64("old:p") } })) },
  broken: { ".dockerconfigjson": base64("{") },
};

let client: KubeClient;
let api: ApiServer;
beforeAll(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport());
  const namespace = "default";
  for (const [name, content] of Object.entries(data))
    await client.create(resources.secrets, { metadata: { namespace, name }, data: content });
  const imagePullSecrets = [{ name: "cfg" }];
  const metadata = { namespace, name: "builder" };
  await client.create(resources.serviceAccounts, { metadata, imagePullSecrets });
});
afterAll(() => api.close());

const podWith = (spec: object) => ({ metadata: { namespace: "default", name: "p" }, spec }) as Pod;
const secretsOf = (...names: string[]) =>
  podWith({ imagePullSecrets: names.map((name) => ({ name })) });

test.for([
  ["registry.example", "other/app", "all", "one:two"],
  ["registry.example", "team/app", "team", "p"],
  ["registry.example", "team/app/part", "team", "p"],
  ["registry.example", "team/apple", "all", "one:two"],
  ["eu.mirror.example:5000", "x", "glob", "p"],
  ["docker.io", "library/x", "hub", "p"],
  ["a.b.mirror.example:5000", "x", undefined, undefined],
  ["broken.example", "x", undefined, undefined],
  ["other.example", "x", undefined, undefined],
] as const)("%s/%s is pulled as %s", async ([host, repository, username, password]) => {
  const credentials = await pullCredentials(client, secretsOf("json"));
  const found = credentials?.find(host, repository);
  expect([found?.username, found?.password]).toEqual([username, password]);
});

test("a ServiceAccount's Secrets count for Pods that name none; what is missing is reported", async () => {
  const account = await pullCredentials(client, podWith({ serviceAccountName: "builder" }));
  expect(account?.find("old.example", "x")).toMatchObject({ username: "old" });
  expect(await pullCredentials(client, podWith({}))).toBeUndefined();
  const own = await pullCredentials(client, secretsOf("absent", "broken", "cfg"));
  expect(own?.missing).toEqual(["absent", "broken"]);
  expect(own?.find("old.example", "x")).toMatchObject({ username: "old" });
});
