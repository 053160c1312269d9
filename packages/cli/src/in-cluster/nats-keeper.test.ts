/** NATS servers of the Serverless object, on a real API server: what reaches the programs that use them. */
import { createApiServer } from "@spry/apiserver";
import { Remarks, type Serverless, serverlessCrd, serverlesses } from "@spry/controller";
import { KubeClient, resources, silentLogger, type UnknownObject } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventingSecretName } from "./eventing-token.ts";
import { keepNatsServers } from "./nats-keeper.ts";

const namespace = "kyma-system";
const names = ["serverless-eventing", "serverless-gateway"];
const patience = { timeout: 20_000 };
const stop: (() => Promise<unknown>)[] = [];
let client: KubeClient;
let remarks: Remarks;

beforeEach(async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  await client.apply(resources.customResourceDefinitions, serverlessCrd());
  const target = { namespace, name: eventingSecretName };
  await client.create(resources.secrets, { metadata: target, data: { natsToken: "dG9rZW4=" } });
  for (const name of names) await client.create(resources.deployments, deployment(name));
  remarks = new Remarks();
  const abort = new AbortController();
  const options = { client, namespace, remarks, log: silentLogger, signal: abort.signal };
  const working = keepNatsServers(options);
  stop.push(async () => {
    abort.abort();
    await working;
    await api.close();
  });
});
afterEach(async () => {
  for (const each of stop.splice(0)) await each();
});

const deployment = (name: string) =>
  ({
    metadata: { namespace, name },
    spec: {
      selector: { matchLabels: { name } },
      template: {
        metadata: { labels: { name } },
        spec: { containers: [{ name: "c", image: "i" }] },
      },
    },
  }) as UnknownObject;

async function configure(nats: object | undefined, where = namespace): Promise<void> {
  const object: Serverless = { metadata: { namespace: where, name: "default" } };
  const spec = { eventing: nats ? { nats } : {} } as NonNullable<Serverless["spec"]>;
  const stored = await client.apply(serverlesses, { ...object, spec }, { force: true });
  const status = { served: "True" as const };
  await client.update(serverlesses, { ...stored, status }, { subresource: "status" });
}

/** The external keys of the Secret, decoded. */
async function given(): Promise<Record<string, string>> {
  const { data = {} } = await client.get(resources.secrets, {
    namespace,
    name: eventingSecretName,
  });
  const external = Object.entries(data).filter(([key]) => key.startsWith("external"));
  return Object.fromEntries(
    external.map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}

const marks = () =>
  Promise.all(
    names.map(async (name) => {
      const { spec } = await client.get(resources.deployments, { namespace, name });
      return spec?.template.metadata?.annotations?.["eventing.spry.io/nats"];
    }),
  );

const secret = (data: Record<string, string>) =>
  client.apply(resources.secrets, {
    metadata: { namespace, name: "my-nats" },
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  });

const servers = ["nats://a.example:4222", "nats://b.example:4222"];

test("the servers and their credentials reach the programs, which start again", async () => {
  await secret({ username: "me", password: "secret" });
  await configure({ servers, secretName: "my-nats", replicas: 3, allowPlaintext: true });
  await expect.poll(given, patience).toEqual({
    externalServers: servers.join(","),
    externalReplicas: "3",
    externalPlaintext: "true",
    externalUsername: "me",
    externalPassword: "secret",
  });
  await expect.poll(async () => (await marks()).every(Boolean), patience).toBe(true);
  const [first] = await marks();

  await configure({ servers: servers.slice(0, 1) });
  await expect
    .poll(given, patience)
    .toEqual({ externalServers: servers[0], externalReplicas: "1" });
  await expect
    .poll(async () => (await marks()).every((each) => each !== first), patience)
    .toBe(true);

  await configure(undefined);
  await expect.poll(given, patience).toEqual({});
  await expect.poll(marks, patience).toEqual([undefined, undefined]);
  const { data } = await client.get(resources.secrets, { namespace, name: eventingSecretName });
  expect(data).toEqual({ natsToken: "dG9rZW4=" });
});

test("an object of another namespace changes nothing, and without one the installation's own servers are used", async () => {
  const elsewhere = "shop";
  await client.apply(resources.namespaces, { metadata: { name: elsewhere } });
  await configure({ servers: ["nats://theirs.example:4222"] }, elsewhere);
  await configure({ servers: servers.slice(0, 1) });
  const ours = { externalServers: servers[0], externalReplicas: "1" };
  await expect.poll(given, patience).toEqual(ours);
  await expect.poll(async () => (await marks()).every(Boolean), patience).toBe(true);

  await client.delete(serverlesses, { namespace, name: "default" });
  await expect.poll(given, patience).toEqual({});
  await expect.poll(marks, patience).toEqual([undefined, undefined]);
});

test("the mark of the Pods depends on a secret key, so that no password can be guessed from it", async () => {
  const target = { namespace, name: eventingSecretName };
  await configure({ servers });
  await expect.poll(async () => (await marks()).every(Boolean), patience).toBe(true);
  const [first] = await marks();
  await client.patch(resources.secrets, target, { data: { natsToken: "b3RoZXI=" } });
  // The keeper looks again.
  const labels = { changed: "true" };
  await client.patch(serverlesses, { namespace, name: "default" }, { metadata: { labels } });
  await expect
    .poll(async () => (await marks()).every((each) => each !== first), patience)
    .toBe(true);
  expect(await given()).toEqual({ externalServers: servers.join(","), externalReplicas: "1" });
});

test("a Secret that is missing, or has no credentials, is named in the status, and nothing changes", async () => {
  await configure({ servers, secretName: "my-nats" });
  await expect
    .poll(() => remarks.list(), patience)
    .toEqual(["spec.eventing.nats.secretName: Secret kyma-system/my-nats does not exist"]);
  await secret({ user: "me" });
  await configure({ servers: servers.slice(1), secretName: "my-nats" });
  await expect
    .poll(() => remarks.list(), patience)
    .toEqual([
      "spec.eventing.nats.secretName: Secret kyma-system/my-nats has neither token, nor username and password",
    ]);
  expect(await given()).toEqual({});
  expect(await marks()).toEqual([undefined, undefined]);
});

test("credentials go to servers with TLS, to this machine's, or to where the object allows that", async () => {
  await secret({ token: "secret" });
  await configure({ servers, secretName: "my-nats" });
  await expect
    .poll(() => remarks.list(), patience)
    .toEqual([
      "spec.eventing.nats.servers: nats://a.example:4222 would get the credentials without TLS: use tls://, or set allowPlaintext: true where the network itself is protected",
    ]);
  expect(await given()).toEqual({});
  expect(await marks()).toEqual([undefined, undefined]);
  await configure({ servers: ["tls://a.example:4222"], secretName: "my-nats" });
  await expect.poll(given, patience).toMatchObject({ externalToken: "secret" });
  expect(remarks.list()).toEqual([]);
  await secret({ token: "secret", "ca.crt": "authority" });
  await configure({ servers, secretName: "my-nats" });
  await expect.poll(given, patience).toMatchObject({ externalAuthority: "authority" });
});

test("where the object no longer allows plaintext, the credentials in use are not sent so any more", async () => {
  await secret({ token: "secret" });
  await configure({ servers, secretName: "my-nats", allowPlaintext: true });
  await expect.poll(given, patience).toMatchObject({ externalPlaintext: "true" });
  await expect.poll(async () => (await marks()).every(Boolean), patience).toBe(true);
  const [first] = await marks();
  await configure({ servers, secretName: "my-nats" });
  await expect.poll(given, patience).toEqual({
    externalServers: servers.join(","),
    externalReplicas: "1",
    externalToken: "secret",
  });
  await expect
    .poll(async () => (await marks()).every((each) => each && each !== first), patience)
    .toBe(true);
  expect(remarks.list()).toEqual([expect.stringContaining("without TLS")]);
});

test("servers that cannot be used are refused by the object's definition", async () => {
  await expect(configure({ servers: [] })).rejects.toThrow(/servers/);
  await expect(configure({ servers, replicas: 2 })).rejects.toThrow(/replicas/);
});
