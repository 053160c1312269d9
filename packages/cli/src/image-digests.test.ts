import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import {
  assembleImage,
  createLayer,
  createRegistry,
  type Login,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { KubeClient, ManualClock, parseHostPort, resources } from "@spry/kube";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createDigestResolver, type DigestResolverOptions } from "./image-digests.ts";

const login: Login = { username: "shop", password: "shop's own" };
const namespace = "shop";
const registry = createRegistry({
  dir: mkdtempSync(path.join(tmpdir(), "digests-")),
  logins: {
    grantOf: ({ username, password }) =>
      username === login.username && password === login.password ? { for: "platform" } : undefined,
  },
});
const api = await createApiServer({ dataDir: ":memory:" });
const client = new KubeClient(api.transport());
let image = "";
let digest = "";
let close = async () => {};

beforeAll(async () => {
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  close = () => server.close();
  const host = `127.0.0.1:${server.port}`;
  image = `${host}/shop/cart:1`;
  const content = assembleImage({
    layers: [await createLayer([{ path: "file", content: Buffer.from("x") }])],
    config: {},
  });
  const writer = new RegistryClient({ credentials: () => login });
  ({ digest } = await pushImage(writer, content, parseImageName(image)));
  const auth = Buffer.from(`${login.username}:${login.password}`).toString("base64");
  const config = JSON.stringify({ auths: { [host]: { auth } } });
  for (const name of [namespace, "strangers"])
    await client.create(resources.namespaces, { metadata: { name } });
  await client.create(resources.secrets, {
    metadata: { namespace, name: "login" },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": Buffer.from(config).toString("base64") },
  });
  await client.create(resources.serviceAccounts, {
    metadata: { namespace, name: "who-may-pull" },
    imagePullSecrets: [{ name: "login" }],
  });
});
afterAll(async () => {
  await close();
  await registry.close();
  await api.close();
});

const resolverWith = (options: Partial<DigestResolverOptions> = {}) =>
  createDigestResolver({
    client,
    allowedLoopback: [hostPortOf(image)],
    clock: new ManualClock(),
    ...options,
  });
/** The operator's entry for the registry of an image's name. */
const hostPortOf = (name: string) => parseHostPort(name.split("/")[0] ?? "")!;
const podsWith = (spec: object) => ({
  metadata: { namespace },
  spec: { containers: [], ...spec },
});
const named = () => `${image.replace(/:1$/, "")}@${digest}`;

test("a tag's digest is read with the Secrets that the Pods will pull with", async () => {
  const resolve = resolverWith();
  expect(await resolve(image, podsWith({ imagePullSecrets: [{ name: "login" }] }))).toBe(named());
  const byAccount = podsWith({ serviceAccountName: "who-may-pull" });
  expect(await resolverWith()(image, byAccount)).toBe(named());
});

test("who may not pull it learns no digest, and is not what decides for others", async () => {
  const resolve = resolverWith();
  const strangers = { metadata: { namespace: "strangers" }, spec: { containers: [] } };
  expect(await resolve(image, strangers)).toBeUndefined();
  expect(await resolve(image, podsWith({ imagePullSecrets: [{ name: "login" }] }))).toBe(named());
});

test("a registry under another name gets the same login", async () => {
  const port = image.slice("127.0.0.1:".length).split("/")[0];
  const host = "registry.shop.example:5000";
  const auth = { username: login.username, password: login.password };
  await client.create(resources.secrets, {
    metadata: { namespace, name: "other-name" },
    data: {
      ".dockerconfigjson": Buffer.from(JSON.stringify({ auths: { [host]: auth } })).toString(
        "base64",
      ),
    },
  });
  const resolve = resolverWith({ mirrors: { [host]: { url: `http://127.0.0.1:${port}` } } });
  const pods = podsWith({ imagePullSecrets: [{ name: "other-name" }] });
  expect(await resolve(`${host}/shop/cart:1`, pods)).toBe(`${host}/shop/cart@${digest}`);
});

test("no request goes to a registry on loopback that the operator has not allowed", async () => {
  let asked = 0;
  const other = await listening("127.0.0.1", (response) => {
    asked++;
    response.end();
  });
  const { port } = new URL(other);
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "x.localhost", "0x7f.1"])
    expect(await resolverWith()(`${host}:${port}/a:1`, podsWith({}))).toBeUndefined();
  expect(asked).toBe(0);
});

test.each(["for a token", "by a redirect"])(
  "a registry that is allowed leads to nothing else on this machine: %s",
  async (how) => {
    let asked = 0;
    const other = await listening("127.0.0.2", (response) => {
      asked++;
      response.end(JSON.stringify({ token: "x" }));
    });
    const hostile = await listening("127.0.0.1", (response) => {
      const headers =
        how === "for a token"
          ? { "www-authenticate": `Bearer realm="${other}/shutdown?now",service="x"` }
          : { location: `${other}/shutdown?now` };
      response.writeHead(how === "for a token" ? 401 : 307, headers).end();
    });
    const { host } = new URL(hostile);
    const resolve = resolverWith({ allowedLoopback: [hostPortOf(host)] });
    expect(await resolve(`${host}/a:1`, podsWith({}))).toBeUndefined();
    expect(asked).toBe(0);
  },
);

async function listening(
  host: string,
  answer: (response: ServerResponse) => void,
): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}
