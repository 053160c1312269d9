import { functionRevisions, functions, names } from "@spry/function";
import { type Job, resources, type Secret } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const label = "serverless.kyma-project.io/";
const own = { [`${label}remote-registry`]: "config" };
const forAll = { ...own, [`${label}config`]: "credentials" };

/** The contract's Secret for a registry elsewhere. */
function external(at: string, where: string, labels: Record<string, string>): Secret {
  const stringData = {
    username: "u",
    password: "p",
    isInternal: "false",
    registryAddress: at,
    serverAddress: at,
    ".dockerconfigjson": JSON.stringify({ auths: { [at]: { auth: "dTpw" } } }),
  };
  return {
    metadata: { name: names.remoteRegistrySecret, namespace: where, labels },
    type: "kubernetes.io/dockerconfigjson",
    stringData,
  };
}

const choose = (at: string, where = namespace, labels: Record<string, string> = own) =>
  platform.client.apply(resources.secrets, external(at, where, labels));
const unchoose = (where = namespace) =>
  platform.client.delete(resources.secrets, {
    namespace: where,
    name: names.remoteRegistrySecret,
  });

function argumentOf(job: Job, flag: string): string | undefined {
  const args = job.spec?.template.spec?.containers[0]?.args ?? [];
  return args[args.indexOf(flag) + 1];
}
const buildFor = (address: string) =>
  platform.until(`a build for ${address}`, async () => {
    const job = await platform.buildJob("hello").catch(() => undefined);
    return job && argumentOf(job, "--destination")?.startsWith(`${address}/`) && job;
  });
const imageOf = async () =>
  (await platform.deployment("hello")).spec?.template.spec?.containers[0]?.image ?? "";
const imageFrom = (address: string) =>
  platform.until(`an image from ${address}`, async () =>
    (await imageOf()).startsWith(`${address}/`),
  );

describe("a Function", () => {
  test("is built for the registry that its namespace chooses, and serves the old image until then", async () => {
    await platform.running("hello");
    const before = await imageOf();
    await choose("other.example/team");
    const job = await buildFor("other.example/team");
    await platform.settle();
    expect(await imageOf()).toBe(before);
    // What it starts from stays where it is.
    expect(argumentOf(job, "--base")).toMatch(/^push\.example:5000\/spry\/nodejs/);
    const credentials = job.spec?.template.spec?.volumes?.find((v) => v.name === "credentials");
    expect(credentials?.projected?.sources?.[0]?.secret?.name).toBe(names.remoteRegistrySecret);
    await platform.finishBuild("hello", "2");
    await imageFrom("other.example/team");
    await platform.rollOut("hello");

    // The history names the image there: a second build would make the same.
    await unchoose();
    await imageFrom("pull.example");
    expect(await imageOf()).toBe(before);
  });

  test("with a hyphen has an external repository of its own, and runs on with what was built before it had", async () => {
    const destination = async (name: string) =>
      argumentOf(await platform.buildJob(name), "--destination");
    const imageAt = (name: string, repository: string) =>
      platform.until(`an image from ${repository}`, async () => {
        const { spec } = await platform.deployment(name);
        return spec?.template.spec?.containers[0]?.image?.startsWith(
          `other.example/${repository}@`,
        );
      });
    await choose("other.example");
    await platform.apply("say-hello");
    expect(await destination("say-hello")).toMatch(`other.example/${namespace}.say-hello:`);
    await platform.finishBuild("say-hello");
    await imageAt("say-hello", `${namespace}.say-hello`);

    // As an earlier version of Spry has left it.
    const former = `other.example/${namespace}-say-hello@sha256:${"3".repeat(64)}`;
    await platform.rollOut("say-hello");
    await platform.settle();
    await platform.stopController();
    const { build } = (await platform.get("say-hello")).status ?? {};
    await platform.client.patch(
      functions,
      { namespace, name: "say-hello" },
      { status: { build: { ...build, image: former } } },
      { subresource: "status" },
    );
    const deployment = await platform.deployment("say-hello");
    const template = { spec: { containers: [{ name: names.container, image: former }] } };
    const target = { namespace, name: deployment.metadata.name! };
    await platform.client.patch(
      resources.deployments,
      target,
      { spec: { template } },
      { type: "strategic" },
    );
    for (const { metadata } of (await platform.client.list(functionRevisions, { namespace })).items)
      await platform.client.delete(functionRevisions, { namespace, name: metadata.name! });
    platform.startController();
    await platform.settle();
    await imageAt("say-hello", `${namespace}-say-hello`);
    const jobs = await platform.children(resources.jobs, "say-hello");
    expect(jobs).toHaveLength(1);
  });

  test("builds again what an earlier version of Spry began to push to a name that others have, too", async () => {
    await choose("other.example");
    await platform.apply("say-hello");
    const job = await platform.buildJob("say-hello");
    await platform.stopController();
    await platform.client.delete(
      resources.jobs,
      { namespace, name: job.metadata.name! },
      { propagationPolicy: "Background" },
    );
    const { name, annotations, ownerReferences } = job.metadata;
    const { template } = job.spec!;
    const isJobs = /(job-name|controller-uid)$/;
    const labels = Object.fromEntries(
      Object.entries(template.metadata?.labels ?? {}).filter(([label]) => !isJobs.test(label)),
    );
    const container = template.spec!.containers[0]!;
    container.args = container.args!.map((each) =>
      each.replace(`/${namespace}.say-hello:`, `/${namespace}-say-hello:`),
    );
    await platform.client.create(resources.jobs, {
      metadata: {
        name: name!,
        namespace,
        labels,
        annotations: annotations!,
        ownerReferences: ownerReferences!,
      },
      spec: { template: { ...template, metadata: { labels } }, backoffLimit: 0 },
    });
    platform.startController();
    await platform.until("a build for the new name", async () => {
      const again = await platform.buildJob("say-hello").catch(() => undefined);
      return argumentOf(again!, "--destination")?.includes(`/${namespace}.say-hello:`);
    });
  });

  test("has no source from a name that another Function may have had, but one that it is built of already", async () => {
    const of = (repository: string, digit = "5") => ({
      source: { image: `other.example/${repository}@sha256:${digit.repeat(64)}` },
    });
    await choose("other.example");
    // Of `say-hello` here, and of `hello` in the namespace `<namespace>-say`.
    await platform.apply("say-hello", of(`${namespace}-say-hello`));
    await platform.condition(
      "say-hello",
      "ConfigurationReady",
      "SourceUpdateFailed",
      "not in the Function's own repository",
    );
    expect(await platform.children(resources.jobs, "say-hello")).toEqual([]);

    await platform.apply("say-hello", of(`${namespace}.say-hello`));
    await platform.condition("say-hello", "ConfigurationReady", "SourceUpdated");
    await platform.buildJob("say-hello");
    // To name a digest is not to have it.
    await platform.apply("say-hello", of(`${namespace}-say-hello`));
    await platform.condition("say-hello", "ConfigurationReady", "SourceUpdateFailed");
    await platform.apply("say-hello", of(`${namespace}.say-hello`));
    await platform.condition("say-hello", "ConfigurationReady", "SourceUpdated");
    await platform.finishBuild("say-hello");
    await platform.condition("say-hello", "BuildReady", "JobFinished");
    await platform.apply("say-hello", of(`${namespace}-say-hello`));
    await platform.settle();
    await platform.condition("say-hello", "ConfigurationReady", "SourceUpdated");
    await platform.apply("say-hello", of(`${namespace}-say-hello`, "6"));
    await platform.condition("say-hello", "ConfigurationReady", "SourceUpdateFailed");
  });

  test("leaves a build that is under way when the registry changes, for one that goes there", async () => {
    await platform.apply("hello");
    await buildFor("push.example:5000");
    await choose("other.example");
    await buildFor("other.example");
    await platform.finishBuild("hello");
    await imageFrom("other.example");
  });

  test("does not care for a Secret of that name without the label", async () => {
    await platform.running("hello");
    await choose("other.example", namespace, {});
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    expect(await imageOf()).toMatch(/^pull\.example\//);
  });
});

describe("a choice for all namespaces", () => {
  const copy = () =>
    platform.client
      .get(resources.secrets, { namespace, name: names.remoteRegistrySecret })
      .catch(() => undefined);

  test("reaches them, and leaves them again", async () => {
    await platform.running("hello");
    await choose("other.example", "kyma-system", forAll);
    await buildFor("other.example");
    expect((await copy())?.data?.["registryAddress"]).toBe(
      Buffer.from("other.example").toString("base64"),
    );
    await unchoose("kyma-system");
    await platform.until("the copy to be gone", async () => (await copy()) === undefined);
    await platform.settle();
    expect(await imageOf()).toMatch(/^pull\.example\//);
  });

  test("is only for all when it says so", async () => {
    await choose("other.example", "kyma-system", own);
    await platform.settle();
    expect(await copy()).toBeUndefined();
  });

  test("leaves alone what a namespace keeps as its own", async () => {
    await choose("mine.example", namespace, { ...own, [`${label}managed-by`]: "user" });
    await choose("other.example", "kyma-system", forAll);
    await platform.apply("hello");
    await buildFor("mine.example");
    await unchoose("kyma-system");
    await platform.settle();
    expect(await copy()).toBeDefined();
  });
});
