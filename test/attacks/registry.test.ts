/** Two tenants of one platform, each with `edit` in a namespace of its own: neither gets at the other's images. */
import {
  httpsTransport,
  type Job,
  KubeClient,
  loadKubeconfig,
  type Pod,
  resources,
} from "@spry/kube";
import { functions } from "@spry/function";
import { afterAll, beforeAll, expect, test } from "vitest";
import { functionManifest, Platform } from "../support/platform.ts";

const platform = new Platform({ args: ["--no-example"] });
let client: KubeClient;
const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
// Once these two were one repository.
const thief = { namespace: "a", name: "b-c" };
const victim = { namespace: "a-b", name: "c" };
const applied = ({ namespace, name }: typeof thief, source: string, spec: object = {}) =>
  platform.k("apply -f -", functionManifest(name, source, { ...spec }, { namespace }));
const answers = ({ namespace, name }: typeof thief, text: string) =>
  platform.callUntil(`${name}.${namespace}`, ({ body }) => body === text);

interface Login {
  username: string;
  password: string;
}

/** By a docker configuration in a Secret, read as the tenant who may read it. */
async function loginOf(namespace: string, secret: string): Promise<Login> {
  const config = await platform.k(
    `get secret ${secret} -n ${namespace} --as=system:serviceaccount:${namespace}:tenant -o jsonpath={.data.\\.dockerconfigjson}`,
  );
  const { auths } = JSON.parse(Buffer.from(config, "base64").toString()) as {
    auths: Record<string, { auth: string }>;
  };
  const pair = Buffer.from(Object.values(auths)[0]?.auth ?? "", "base64").toString();
  const colon = pair.indexOf(":");
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

async function ask(
  { username, password }: Login,
  method: string,
  path: string,
  body?: string,
): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const type = "application/vnd.oci.image.manifest.v1+json";
  const headers = { authorization, "content-type": type };
  const url = `${platform.endpoints.registry}/v2/${path}`;
  return (await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })).status;
}

const imageOf = async (target: typeof thief) =>
  (await client.get(functions, target)).status?.build?.image ?? "";

beforeAll(async () => {
  await platform.start();
  client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
  for (const { namespace } of [thief, victim]) {
    await platform.k(`create namespace ${namespace}`);
    await platform.k(`create serviceaccount tenant -n ${namespace}`);
    await platform.k(
      `create rolebinding tenant --clusterrole=edit --serviceaccount=${namespace}:tenant -n ${namespace}`,
    );
  }
  await Promise.all([applied(thief, answering("thief")), applied(victim, answering("victim"))]);
  await Promise.all([answers(thief, "thief"), answers(victim, "victim")]);
});
afterAll(() => platform.remove());

test("Functions whose names would once have been one have images of their own", async () => {
  expect(await imageOf(thief)).toMatch(/^registry\.spry\.localhost\/a\/b-c@sha256:/);
  expect(await imageOf(victim)).toMatch(/^registry\.spry\.localhost\/a-b\/c@sha256:/);
});

test.each(["serverless-registry-config-default", "serverless-registry-config-internal"])(
  "the login in %s is good for its namespace, without deleting",
  async (secret) => {
    const login = await loginOf(thief.namespace, secret);
    const digest = (await imageOf(victim)).split("@")[1];
    const own = (await imageOf(thief)).split("@")[1];
    const asked = async (method: string, path: string, body?: string) =>
      `${method} ${path} ${await ask(login, method, path, body)}`;
    for (const [method, path, status, body] of [
      ["GET", `a/b-c/manifests/${own}`, 200],
      ["POST", "a/b-c/blobs/uploads/", 202],
      ["GET", "spry/nodejs24/manifests/latest", 200],
      ["DELETE", `a/b-c/manifests/${own}`, 403],
      ["GET", `a-b/c/manifests/${digest}`, 403],
      ["GET", "a-b/c/tags/list", 403],
      ["POST", "a-b/c/blobs/uploads/", 403],
      ["PUT", "a-b/c/manifests/stolen", 403, "{}"],
      ["DELETE", `a-b/c/manifests/${digest}`, 403],
      ["PUT", "spry/nodejs24/manifests/latest", 403, "{}"],
      ["PUT", "a-b/dependencies.cache/nodejs24/manifests/k", 403, "{}"],
      ["PUT", "a/dependencies.cache/nodejs24/manifests/k", 403, "{}"],
      ["GET", "../metrics", 403],
    ] as const)
      expect(await asked(method, path, body)).toBe(`${method} ${path} ${status}`);
  },
);

test("another's image that has run on the machine does not run for a Pod that may not pull it", async () => {
  const image = await imageOf(victim);
  const run = async (name: string, spec: object) => {
    const pod = {
      metadata: { namespace: thief.namespace, name },
      spec: { containers: [{ name: "main", image, ...spec }], restartPolicy: "Never", ...spec },
    };
    await client.create<Pod>(resources.pods, pod);
  };
  await run("plain", {});
  await run("never", { imagePullPolicy: "Never" });
  await run("own-login", { serviceAccountName: "serverless-function" });
  const reasonOf = async (name: string) => {
    const { status } = await client.get(resources.pods, { namespace: thief.namespace, name });
    const waiting = status?.containerStatuses?.[0]?.state?.waiting;
    return `${status?.phase} ${waiting?.reason} ${waiting?.message}`;
  };
  await expect
    .poll(() => reasonOf("plain"))
    .toMatch(/^Pending (ErrImagePull|ImagePullBackOff) .*DENIED/);
  await expect
    .poll(() => reasonOf("own-login"))
    .toMatch(/^Pending (ErrImagePull|ImagePullBackOff) .*DENIED/);
  await expect.poll(() => reasonOf("never")).toMatch(/^Pending ErrImageNeverPull/);
});

test("who runs an image runs it again, and after a restart of the platform", async () => {
  const pods = () => platform.k(`get pods -n ${victim.namespace} -o name`);
  const before = await pods();
  await platform.k(`delete pods --all -n ${victim.namespace}`);
  await expect.poll(pods).not.toBe(before);
  await answers(victim, "victim");
  await platform.kill();
  await platform.start();
  client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
  await answers(victim, "victim");
});

test("a build's login is good for its Function, and ends with its Job", async () => {
  const slow = { namespace: thief.namespace, name: "slow" };
  const dependencies = JSON.stringify({ scripts: { build: "sleep 4" } });
  await applied(slow, answering("slow"), { dependencies });
  const jobOf = async (): Promise<Job | undefined> => {
    const labelSelector = "serverless.kyma-project.io/function-name=slow";
    return (await client.list(resources.jobs, { namespace: slow.namespace, labelSelector }))
      .items[0];
  };
  await expect.poll(async () => (await jobOf())?.status?.active).toBe(1);
  const secret =
    (await jobOf())?.metadata.annotations?.["serverless.kyma-project.io/registry-login"] ?? "";
  const login = await loginOf(slow.namespace, secret);
  expect(login.username).toBe("build-a-slow");
  const session = "a/slow/blobs/uploads/";
  for (const [method, path, status] of [
    ["POST", session, 202],
    ["POST", "a/dependencies.cache/nodejs24/blobs/uploads/", 202],
    ["GET", "spry/nodejs24/manifests/latest", 200],
    ["POST", "a/b-c/blobs/uploads/", 403],
    ["GET", "a/b-c/tags/list", 403],
    ["POST", "a-b/c/blobs/uploads/", 403],
    ["DELETE", "a/slow/manifests/x", 403],
  ] as const)
    expect(`${path} ${await ask(login, method, path)}`).toBe(`${path} ${status}`);
  await answers(slow, "slow");
  await expect.poll(() => ask(login, "POST", session)).toBe(401);
  // It is a Secret of the Job, and goes with it.
  await platform.k(`delete function slow -n ${slow.namespace}`);
  await expect
    .poll(() => platform.k(`get secrets -n ${slow.namespace} -o name`))
    .not.toContain(secret);
});

test("who makes a namespace again under another's name finds none of its images, and the old login has ended", async () => {
  const login = await loginOf(victim.namespace, "serverless-registry-config-default");
  const digest = (await imageOf(victim)).split("@")[1];
  await platform.k(`delete namespace ${victim.namespace}`);
  expect(await ask(login, "GET", `a-b/c/manifests/${digest}`)).toBe(401);
  await platform.k(`create namespace ${victim.namespace}`);
  await platform.k(`create serviceaccount tenant -n ${victim.namespace}`);
  await platform.k(
    `create rolebinding tenant --clusterrole=edit --serviceaccount=${victim.namespace}:tenant -n ${victim.namespace}`,
  );
  const secretThere = () =>
    loginOf(victim.namespace, "serverless-registry-config-default").catch(() => undefined);
  await expect.poll(secretThere).toBeDefined();
  const next = (await secretThere()) ?? login;
  expect(next).not.toEqual(login);
  expect(await ask(next, "GET", `a-b/c/manifests/${digest}`)).toBe(404);
  expect(await ask(login, "GET", `a-b/c/manifests/${digest}`)).toBe(401);
});
