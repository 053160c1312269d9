/** Functions whose source is a Git repository, with a real server for them to ask. */
import { annotations, functions, type GitRepositorySource } from "@spry/function";
import { resources } from "@spry/kube";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namespace, TestPlatform } from "../testing/platform.ts";

const login = { username: "ann", password: "hunter22-hunter22" };
const minute = 60_000;
let platform: TestPlatform;
let repository: TestRepository;
let server: GitHttpServer;
beforeEach(async () => {
  platform = await TestPlatform.start({ gitAllowedAddresses: ["127.0.0.0/8"] });
  repository = new TestRepository();
  repository.commit({ "handler.js": "one" });
  server = await GitHttpServer.start({ root: repository.root });
});
afterEach(async () => {
  await platform[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  repository[Symbol.dispose]();
});

function apply(name: string, git: Partial<GitRepositorySource> = {}, more: object = {}) {
  const url = `${server.origin}/shop.git`;
  const gitRepository = { url, reference: "main", baseDir: "/", ...git };
  return platform.apply(name, { source: { gitRepository } }, more);
}

async function running(name: string, git: Partial<GitRepositorySource> = {}, more: object = {}) {
  await apply(name, git, more);
  await platform.finishBuild(name);
  await platform.rollOut(name);
  await platform.condition(name, "Running", "DeploymentReady");
}

const lookUps = () => server.requests.filter((request) => request.endsWith("/info/refs")).length;
const commitOf = async (name: string) => (await platform.get(name)).status?.commit;
const writeSecret = (data: Record<string, string>, type = "Opaque") =>
  platform.client.apply(resources.secrets, {
    metadata: { name: "login", namespace },
    type,
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  });

describe("a Function from Git", () => {
  test("is built from the commit that its reference is", async () => {
    const commit = repository.commit({ "handler.js": "two" });
    await apply("hello");
    const condition = await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
    expect(condition).toMatchObject({ status: "True", message: "Sources hello updated" });
    const { status } = await platform.get("hello");
    expect(status).toMatchObject({ commit, reference: "main", baseDir: "/" });
    const job = await platform.buildJob("hello");
    const [fetcher] = job.spec?.template.spec?.initContainers ?? [];
    expect(fetcher?.args).toEqual(
      expect.arrayContaining([`--commit=${commit}`, "--reference=main", "--base-dir=."]),
    );
    expect(await platform.children(resources.configMaps, "hello")).toEqual([]);
  });

  test("is built anew when its branch moves, and serves the old image until then", async () => {
    await running("hello");
    const before = (await platform.deployment("hello")).spec;
    const commit = repository.commit({ "handler.js": "two" });
    await platform.clock.advance(minute);
    const job = await platform.buildJob("hello");
    await platform.until("the new commit", async () => (await commitOf("hello")) === commit);
    expect((await platform.deployment("hello")).spec).toEqual(before);
    expect(job.spec?.template.spec?.initContainers?.[0]?.args).toContain(`--commit=${commit}`);
    await platform.finishBuild("hello", "2");
    await platform.until("the new image", async () => {
      const { spec } = await platform.deployment("hello");
      return spec?.template.spec?.containers[0]?.image?.endsWith("2".repeat(64));
    });
  });

  test("costs no write while nothing changes", async () => {
    await running("hello");
    await platform.settle();
    platform.writes.length = 0;
    const before = lookUps();
    await platform.clock.advance(minute);
    await expect.poll(lookUps).toBe(before + 1);
    await platform.settle();
    expect(platform.writes).toEqual([]);
  });

  test("that is restarted with goes on with what it knows, while the server is away", async () => {
    await running("hello");
    await platform.settle();
    await platform.stopController();
    await server[Symbol.asyncDispose]();
    platform.startController();
    await platform.condition(
      "hello",
      "ConfigurationReady",
      "SourceUpdateFailed",
      "the Git server cannot be reached",
    );
    await platform.client.patch(functions, { namespace, name: "hello" }, { spec: { replicas: 2 } });
    await platform.until("two replicas", async () => {
      return (await platform.deployment("hello")).spec?.replicas === 2;
    });
  });

  test.each<[string, number]>([
    ["is refused", 500],
    ["meets a conflict", 409],
  ])("runs, from one build, although each write %s once", async (_, code) => {
    const seen = new Set<string>();
    platform.fault = (request, pass) => {
      const target = `${request.method} ${request.url}`;
      if (request.method === "GET" || seen.has(target)) return pass(request);
      seen.add(target);
      const reason = code === 409 ? "Conflict" : "InternalError";
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason };
      return Promise.resolve(Response.json({ ...status, message: "not now" }, { status: code }));
    };
    await running("hello");
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    expect(lookUps()).toBe(1);
  });

  test("that becomes inline has no commit any more, and the other way round no ConfigMap", async () => {
    await running("hello");
    const inline = { source: "code" };
    await platform.apply("hello", { source: { inline } });
    await platform.condition("hello", "ConfigurationReady", "ConfigMapCreated");
    expect((await platform.get("hello")).status?.commit).toBeUndefined();
    await apply("hello");
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
    expect(await platform.children(resources.configMaps, "hello")).toEqual([]);
  });
});

describe("the server is asked", () => {
  test("once for all Functions that ask the same", async () => {
    for (const name of ["a", "b", "c"]) await apply(name);
    for (const name of ["a", "b", "c"]) {
      await platform.condition(name, "ConfigurationReady", "SourceUpdated");
    }
    expect(lookUps()).toBe(1);
  });

  test("as often as the Function says", async () => {
    await apply("hello", {}, { annotations: { [annotations.gitCheckInterval]: "5m" } });
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
    await platform.clock.advance(4 * minute);
    await platform.settle();
    expect(lookUps()).toBe(1);
    await platform.clock.advance(minute);
    await expect.poll(lookUps).toBe(2);
  });

  test("never, when the Function says so, unless a user asks", async () => {
    const off = { [annotations.gitCheckInterval]: "off" };
    await apply("hello", {}, { annotations: off });
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
    const commit = repository.commit({ "handler.js": "two" });
    await platform.clock.advance(60 * minute);
    await platform.settle();
    expect(lookUps()).toBe(1);
    await apply("hello", {}, { annotations: { ...off, [annotations.gitCheck]: "1" } });
    await platform.until("the new commit", async () => (await commitOf("hello")) === commit);
  });

  test("at the usual times, with a warning, when it cannot be read how often", async () => {
    await apply("hello", {}, { annotations: { [annotations.gitCheckInterval]: "soon" } });
    const words = 'Warning: annotation serverless.kyma-project.io/git-check-interval is "soon"';
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated", words);
  });

  test("not at all about a full commit id", async () => {
    await apply("hello", { reference: "c".repeat(40) });
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
    expect(await commitOf("hello")).toBe("c".repeat(40));
    expect(server.requests).toEqual([]);
  });

  test("a silent one delays no other Function", async () => {
    server.intercept = () => true;
    for (const name of ["a", "b", "c", "d", "e"]) await apply(name, { reference: name });
    await platform.condition("a", "ConfigurationReady", "SourceResolving");
    await platform.apply("inline");
    await platform.condition("inline", "ConfigurationReady", "ConfigMapCreated");
    await expect.poll(lookUps).toBe(4);
    await platform.settle();
    expect(lookUps()).toBe(4);
  });
});

describe("a build on demand", () => {
  test("is made of the same commit, once for each demand", async () => {
    await running("hello");
    const first = (await platform.get("hello")).status?.build?.key;
    await apply("hello", {}, { annotations: { [annotations.rebuild]: "1" } });
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "BuildReady", "JobFinished");
    const second = (await platform.get("hello")).status?.build?.key;
    expect(second).not.toBe(first);
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(2);
  });
});

describe("what fails", () => {
  test("is asked again after half a minute, later each time, five minutes at most", async () => {
    server.intercept = (_, response) => {
      response.writeHead(503).end();
      return true;
    };
    await apply("hello");
    await platform.condition("hello", "ConfigurationReady", "SourceUpdateFailed", "503");
    let former = new Set<number>();
    const momentOf = (ms: number) => Math.round(platform.clock.now() + ms);
    // Asking takes a process, which has its own time: the next one is set when it has ended. Watches have timers, too.
    const nextIn = async (seconds: number) => {
      const most = seconds * 1000;
      const left = () =>
        platform.clock.due.find((ms) => ms > most - 200 && ms <= most && !former.has(momentOf(ms)));
      await expect.poll(left).toBeDefined();
      return left() ?? 0;
    };
    for (const [asked, seconds] of [30, 60, 120, 240, 300, 300].entries()) {
      await platform.clock.advance((await nextIn(seconds)) - 1);
      expect(lookUps()).toBe(asked + 1);
      former = new Set(platform.clock.due.map(momentOf));
      await platform.clock.advance(1);
      await expect.poll(lookUps).toBe(asked + 2);
      await platform.settle();
    }
    await nextIn(300);
    server.intercept = undefined;
    await platform.clock.advance(300_000);
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
  });

  test("for a reference that is not there is not asked again, until a user asks", async () => {
    await apply("hello", { reference: "later" });
    const words = 'Stop reconciliation, reason: reference not found: "later"';
    await platform.condition("hello", "ConfigurationReady", "SourceUpdateFailed", words);
    await platform.clock.advance(60 * minute);
    await platform.settle();
    expect(lookUps()).toBe(1);
    repository.commit({ "handler.js": "later" }, "later");
    await apply("hello", { reference: "later" }, { annotations: { [annotations.gitCheck]: "1" } });
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
  });
});

describe("credentials", () => {
  const auth = { type: "basic", secretName: "login" } as const;
  let closed: GitHttpServer;
  beforeEach(async () => {
    closed = await GitHttpServer.start({ root: repository.root, login });
  });
  afterEach(() => closed[Symbol.asyncDispose]());
  const applyClosed = (more: Partial<GitRepositorySource> = {}) =>
    apply("hello", { url: `${closed.origin}/shop.git`, auth, ...more });

  test("come from the Secret, and a change of it is noticed at once", async () => {
    await applyClosed();
    const missing = "Secret login not found in namespace shop";
    await platform.condition("hello", "ConfigurationReady", "SourceUpdateFailed", missing);
    await writeSecret({ ...login, password: "wrong" });
    const { message } = await platform.condition(
      "hello",
      "ConfigurationReady",
      "SourceUpdateFailed",
      "Authorization",
    );
    expect(message).toBe("Authorization to git server failed");
    await writeSecret(login);
    await platform.condition("hello", "ConfigurationReady", "SourceUpdated");
  });

  test("are in no object but the Secret, and only the fetcher has them", async () => {
    await writeSecret(login, "kubernetes.io/basic-auth");
    await applyClosed();
    const job = await platform.buildJob("hello");
    const { initContainers, containers } = job.spec?.template.spec ?? {};
    const mounts = (all = initContainers) =>
      all?.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)) ?? [];
    expect(mounts()).toContain("git-credentials");
    expect(mounts(containers)).not.toContain("git-credentials");
    const everything = JSON.stringify([job, await platform.get("hello")]);
    expect(everything).not.toContain(login.password);
    expect(everything).not.toContain(btoa(login.password));
  });

  test.each<[string, Record<string, string>, string, object, string]>([
    [
      "of another type",
      login,
      "kubernetes.io/ssh-auth",
      { "ssh-privatekey": "k" },
      "inconsistent secret type",
    ],
    ["without password", { username: "ann" }, "Opaque", {}, "has no key password"],
    [
      "with a line end inside",
      { ...login, password: "a\nhost=evil" },
      "Opaque",
      {},
      "contains a line break",
    ],
  ])("%s are refused", async (_, data, type, more, words) => {
    await writeSecret({ ...data, ...more }, type);
    await applyClosed();
    await platform.condition("hello", "ConfigurationReady", "SourceUpdateFailed", words);
  });

  test("for SSH do not fit an https URL", async () => {
    await writeSecret({ key: "k" });
    await applyClosed({ auth: { type: "key", secretName: "login" } });
    const words = "auth.type key needs an SSH address";
    await platform.condition("hello", "ConfigurationReady", "SourceUpdateFailed", words);
  });

  test("do not belong into the URL", async () => {
    const url = closed.origin.replace("//", "//ann:hunter22-hunter22@");
    await applyClosed({ url: `${url}/shop.git` });
    const { message } = await platform.condition(
      "hello",
      "ConfigurationReady",
      "SourceUpdateFailed",
      "holds a password: put it into a Secret",
    );
    expect(message).not.toContain("hunter22");
  });

  test("that change restart no Pod", async () => {
    await writeSecret(login);
    await applyClosed();
    await platform.finishBuild("hello");
    const before = (await platform.rollOut("hello")).spec;
    await writeSecret({ ...login, known_hosts: "x" });
    await platform.settle();
    expect((await platform.deployment("hello")).spec).toEqual(before);
  });
});
