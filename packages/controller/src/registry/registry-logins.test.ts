/** Who is what at the platform's own registry: each namespace, and each build. */
import { annotations, functions, names } from "@spry/function";
import { type Job, resources, type Secret } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { internalRegistrySecret, type RegistryAccess } from "./registry-secret.ts";
import { namespace, TestPlatform } from "../testing/platform.ts";

/** Logins that say what they were asked for. */
const registry: RegistryAccess = {
  pushAddress: "push:5000",
  pullAddress: "pull",
  logins: {
    namespace: (of) => ({ username: `namespace-${of.namespace}`, password: of.uid }),
    build: (of) => ({ username: `build-${of.function}`, password: JSON.stringify(of) }),
  },
};
const decode = (text = "") => Buffer.from(text, "base64").toString();

async function start() {
  const platform = await TestPlatform.start();
  onTestFinished(() => platform[Symbol.asyncDispose]());
  await platform.stopController();
  platform.registry = registry;
  const { client } = platform;
  const system = "kyma-system";
  const others = { "images.example": { auth: "of the images" } };
  for (const name of [names.registrySecret, names.internalRegistrySecret]) {
    const of = { namespace: system, uid: "base" };
    const secret = internalRegistrySecret(of, registry, others);
    await client.apply(resources.secrets, { ...secret, metadata: { ...secret.metadata, name } });
  }
  platform.startController();
  const secret = (name: string, where = namespace) =>
    platform.until(`Secret ${name}`, () =>
      client.get<Secret>(resources.secrets, { namespace: where, name }).catch(() => undefined),
    );
  const whoIn = ({ data }: Secret) => {
    const { auths } = JSON.parse(decode(data?.[".dockerconfigjson"])) as {
      auths: Record<string, { auth: string }>;
    };
    const entries = Object.entries(auths);
    return Object.fromEntries(
      entries.map(([host, { auth }]) => [host, auth.startsWith("of ") ? auth : decode(auth)]),
    );
  };
  const uidOf = async (name: string) =>
    (await client.get(resources.namespaces, { name })).metadata.uid ?? "";
  const buildSecret = async (job: Job) =>
    secret(job.metadata.annotations?.[annotations.registryLogin] ?? "");
  return { platform, client, secret, whoIn, uidOf, buildSecret };
}

test("each namespace has a login of its own, under the contract's names", async () => {
  const { client, platform, secret, whoIn, uidOf } = await start();
  await client.create(resources.namespaces, { metadata: { name: "bank" } });
  for (const name of [namespace, "bank"]) {
    const uid = await uidOf(name);
    for (const secretName of [names.registrySecret, names.internalRegistrySecret]) {
      const who = `namespace-${name}:${uid}`;
      const copy = await platform.until(`login of ${name}`, async () => {
        const found = await secret(secretName, name);
        return decode(found.data?.["username"]) === `namespace-${name}` && found;
      });
      expect(copy.type).toBe("kubernetes.io/dockerconfigjson");
      expect(whoIn(copy)).toEqual({
        "images.example": "of the images",
        "push:5000": who,
        pull: who,
      });
      expect(decode(copy.data?.["password"])).toBe(uid);
    }
  }
});

test("a build has a login of its own, which says what it is for and goes with its Job", async () => {
  const { platform, whoIn, uidOf, buildSecret } = await start();
  await platform.apply("hello", { runtimeImageOverride: `pull/${namespace}/base:1` });
  const job = await platform.buildJob("hello");
  const found = await buildSecret(job);
  const who = whoIn(found);
  const password = (who["push:5000"] ?? "").replace("build-hello:", "");
  expect(JSON.parse(password)).toEqual({
    namespace,
    uid: await uidOf(namespace),
    function: "hello",
    job: { name: job.metadata.name, uid: job.metadata.uid },
    expiresAt: expect.any(Number) as number,
    base: `${namespace}/base`,
  });
  expect(who["pull"]).toBe(who["push:5000"]);
  expect(who["images.example"]).toBe("of the images");
  expect(found.immutable).toBe(true);
  expect(found.metadata.ownerReferences).toMatchObject([{ uid: job.metadata.uid }]);

  const { containers, volumes } = job.spec?.template.spec ?? {};
  const credentials = volumes?.find(({ name }) => name === "credentials")?.projected?.sources;
  expect(credentials?.map((each) => each.secret?.name)).not.toContain(names.internalRegistrySecret);
  expect(credentials?.[0]?.secret?.name).toBe(found.metadata.name);
  const args = containers?.[0]?.args ?? [];
  expect(args[args.indexOf("--destination") + 1]).toMatch(`push:5000/${namespace}/hello:`);
  expect(args[args.indexOf("--dependency-cache") + 1]).toBe(
    `push:5000/${namespace}/dependencies.cache/nodejs24`,
  );
});

test("a build whose login was not made when the controller was killed gets it from the next", async () => {
  const { platform, buildSecret } = await start();
  platform.fault = (request, pass) =>
    request.method === "POST" && request.url.endsWith("/secrets")
      ? Promise.reject(new Error("killed"))
      : pass(request);
  await platform.apply("hello");
  const job = await platform.buildJob("hello");
  await platform.stopController();
  platform.fault = undefined;
  platform.startController();
  expect((await buildSecret(job)).metadata.ownerReferences).toMatchObject([
    { uid: job.metadata.uid },
  ]);
});

test("an image that was built under the former name is neither built again nor rolled out", async () => {
  const { platform } = await start();
  await platform.apply("hello");
  await platform.finishBuild("hello");
  const deployment = await platform.deployment("hello");
  const former = `pull/${namespace}-hello@sha256:${"2".repeat(64)}`;
  const target = { namespace, name: "hello" };
  const { status } = await platform.get("hello");
  await platform.stopController();
  const containers = [{ name: names.container, image: former }];
  await platform.client.patch(
    resources.deployments,
    target,
    { spec: { template: { spec: { containers } } } },
    { type: "strategic" },
  );
  const build = { key: status?.build?.key, image: former };
  await platform.client.patch(functions, target, { status: { build } }, { subresource: "status" });
  platform.startController();
  await platform.settle();
  expect((await platform.get("hello")).status?.build?.image).toBe(former);
  const now = await platform.deployment("hello");
  expect(now.metadata.uid).toBe(deployment.metadata.uid);
  expect(now.spec?.template.spec?.containers[0]?.image).toBe(former);
});
