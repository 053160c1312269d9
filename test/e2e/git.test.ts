/** Functions whose source is in Git, on real servers: HTTP with a password, SSH with a key. */
import {
  createKeyPair,
  GitHttpServer,
  LfsObjects,
  noSshReason,
  SshServer,
  TestRepository,
} from "@spry/source/testing";
import { afterAll, describe, expect, test } from "vitest";
import { decompressed } from "../../packages/image/src/testing/decompressed.ts";
import { enginePlatform } from "../support/engine.ts";
import { allowGitServers } from "../support/git-addresses.ts";
import { changedSince, contentOf } from "../support/files-below.ts";
import { functionManifest } from "../support/platform.ts";

const domain = "serverless.kyma-project.io";
const login = { username: "ann", password: "correct-horse-battery" };
const repository = new TestRepository();
let open: GitHttpServer;
let closed: GitHttpServer;

const platform = enginePlatform(async (started) => {
  const host = started.hostAddress;
  await allowGitServers(started, [host]);
  repository.commit({
    "functions/hello/handler.js": answering("one"),
    "functions/hello/package.json": "{}",
    "README.md": "not a function",
  });
  open = await GitHttpServer.start({ root: repository.root, host });
  closed = await GitHttpServer.start({ root: repository.root, host, login });
});
afterAll(async () => {
  await open?.[Symbol.asyncDispose]();
  await closed?.[Symbol.asyncDispose]();
  repository[Symbol.dispose]();
});

function answering(text: string): string {
  return `module.exports = { main: () => ${JSON.stringify(text)} };`;
}

function gitFunction(
  name: string,
  git: Record<string, unknown> = {},
  annotations: Record<string, string> = {},
): string {
  const url = `${open.origin}/shop.git`;
  const gitRepository = { url, reference: "main", baseDir: "/functions/hello", ...git };
  return functionManifest(name, "", { source: { gitRepository } }, { annotations });
}

const apply = (...args: Parameters<typeof gitFunction>) =>
  platform.k("apply -f -", gitFunction(...args));

const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=110s`);

const statusOf = async (name: string) =>
  JSON.parse(await platform.k(`get function ${name} -o json`)).status;

async function conditionOf(name: string, type: string) {
  const { conditions = [] } = (await statusOf(name)) ?? {};
  return conditions.find((condition: { type: string }) => condition.type === type);
}

const secretOf = (name: string, stringData: Record<string, string>, type = "Opaque") =>
  platform.k(
    "apply -f -",
    JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name }, type, stringData }),
  );

describe("a Function from Git", () => {
  test("runs, and says which commit", async () => {
    await apply("fresh", {}, { [`${domain}/git-check-interval`]: "5s" });
    await running("fresh");
    expect(await platform.call("fresh.default")).toMatchObject({ status: 200, body: "one" });
    const commit = repository.git(["rev-parse", "main"]);
    expect(await statusOf("fresh")).toMatchObject({
      commit,
      reference: "main",
      baseDir: "/functions/hello",
    });
    expect(await conditionOf("fresh", "ConfigurationReady")).toMatchObject({
      status: "True",
      reason: "SourceUpdated",
      message: "Sources fresh updated",
    });
  });

  test("follows its branch", async () => {
    const commit = repository.commit({ "functions/hello/handler.js": answering("two") });
    await platform.callUntil("fresh.default", ({ body }) => body === "two");
    expect(await statusOf("fresh")).toMatchObject({ commit });
  });

  test("is checked at once when a user asks for it", async () => {
    await apply("calm", {}, { [`${domain}/git-check-interval`]: "off" });
    await running("calm");
    repository.commit({ "functions/hello/handler.js": answering("three") });
    await platform.k(`annotate function calm ${domain}/git-check=now`);
    await platform.callUntil("calm.default", ({ body }) => body === "three");
  });

  test("is built anew when a user asks for it, though nothing has changed", async () => {
    const jobs = "get jobs -l serverless.kyma-project.io/function-name=calm -o name";
    const before = (await platform.k(jobs)).split("\n").length;
    await platform.k(`annotate function calm ${domain}/rebuild=please`);
    await expect.poll(async () => (await platform.k(jobs)).split("\n").length).toBe(before + 1);
    await running("calm");
    expect(await platform.call("calm.default")).toMatchObject({ status: 200, body: "three" });
  });

  test("is checked at once when its server says that there was a push", async () => {
    await secretOf("serverless-git-webhook", { token: "of the webhook" });
    repository.commit({ "functions/hello/handler.js": answering("pushed") });
    const push = (token: string) =>
      fetch(`${platform.webhooks}/git/default`, {
        method: "POST",
        headers: { "x-gitlab-token": token },
        body: JSON.stringify({ ref: "refs/heads/main", repository: `${open.origin}/shop` }),
      });
    expect((await push("of another repository")).status).toBe(401);
    const answer = await push("of the webhook");
    expect(await answer.json()).toMatchObject({ functions: ["calm", "fresh"] });
    await platform.callUntil("calm.default", ({ body }) => body === "pushed");
    repository.commit({ "functions/hello/handler.js": answering("three") });
    expect((await push("of the webhook")).status).toBe(200);
    await platform.callUntil("calm.default", ({ body }) => body === "three");
  });

  test("installs what its package.json wants", async () => {
    const handler = `const isNumber = require("is-number");\nmodule.exports = { main: () => String(isNumber("5")) };`;
    repository.commit(
      {
        "handler.js": handler,
        "package.json": JSON.stringify({ dependencies: { "is-number": "7.0.0" } }),
      },
      "with/dependencies",
    );
    await apply("needy", { reference: "with/dependencies", baseDir: "/" });
    await running("needy");
    expect(await platform.call("needy.default")).toMatchObject({ status: 200, body: "true" });
  });

  test("finds the packages of its repository, by the lock file at its root", async () => {
    const json = (value: unknown) => JSON.stringify(value);
    const names = { fn: "fn", shared: "@mono/shared" };
    const fn = { name: names.fn, version: "1.0.0", dependencies: { [names.shared]: "*" } };
    const shared = { name: names.shared, version: "1.0.0", dependencies: { "is-number": "*" } };
    const packages = {
      "": { name: "mono", workspaces: ["apps/*", "packages/*"] },
      "apps/fn": fn,
      "packages/shared": shared,
      [`node_modules/${names.fn}`]: { resolved: "apps/fn", link: true },
      [`node_modules/${names.shared}`]: { resolved: "packages/shared", link: true },
      "node_modules/is-number": { version: "6.0.0" },
    };
    const answer = `import { version } from "./version.ts";\nexport const answer = (): string => "shared " + version;\n`;
    const files = {
      "package.json": json({ name: "mono", private: true, workspaces: ["apps/*", "packages/*"] }),
      "package-lock.json": json({ name: "mono", lockfileVersion: 3, requires: true, packages }),
      "apps/fn/package.json": json({ ...fn, type: "module" }),
      "apps/fn/handler.js": `import { answer } from "@mono/shared";\nexport const main = () => answer();\n`,
      "packages/shared/package.json": json({ ...shared, type: "module", exports: "./index.ts" }),
      "packages/shared/index.ts": answer,
      "packages/shared/version.ts": `import { createRequire } from "node:module";\nconst found: { version: string } = createRequire(import.meta.url)("is-number/package.json");\nexport const { version } = found;\n`,
    };
    repository.commit(files, "monorepo");
    await apply("mono", { reference: "monorepo", baseDir: "apps/fn" });
    await running("mono");
    expect(await platform.call("mono.default")).toMatchObject({
      status: 200,
      body: "shared 6.0.0",
    });
  });

  test("is compiled where its TypeScript has more than types in it", async () => {
    repository.commit({
      "functions/typed/handler.ts": `import { Color } from "./color.ts";
export const main = (): string => Color[Color.Green];`,
      "functions/typed/color.ts": "export enum Color { Red, Green }",
    });
    await apply("typed", { baseDir: "/functions/typed" });
    await running("typed");
    expect(await platform.call("typed.default")).toMatchObject({ status: 200, body: "Green" });
  });

  test("that becomes inline forgets its commit, and the other way round", async () => {
    await platform.k("apply -f -", functionManifest("both", answering("inline")));
    await running("both");
    await platform.k("delete function both");
    await apply("both");
    await running("both");
    // The Pod of the one that was deleted may answer until the gateway has heard of its end.
    await platform.callUntil("both.default", ({ body }) => body === "three");
    await platform.k(
      `patch function both --type=merge -p ${JSON.stringify({
        spec: { source: { gitRepository: null, inline: { source: answering("back") } } },
      }).replaceAll(" ", "\\u0020")}`,
    );
    await platform.callUntil("both.default", ({ body }) => body === "back");
    expect((await statusOf("both")).commit).toBeUndefined();
  });
});

describe("a private repository", () => {
  const auth = (type: string, secretName: string) => ({ auth: { type, secretName } });

  test("opens with username and password, which are never shown", async () => {
    const begin = Date.now();
    await secretOf("login", login);
    await apply("private", { url: `${closed.origin}/shop.git`, ...auth("basic", "login") });
    await running("private");
    expect(await platform.call("private.default")).toMatchObject({ body: "three" });
    await expectNowhere("private", begin, [login.password, btoa(login.password)]);
  });

  test("says so when the password is wrong, and opens once it is right", async () => {
    await secretOf("typo", { ...login, password: "wrong" });
    await apply("locked-out", { url: `${closed.origin}/shop.git`, ...auth("basic", "typo") });
    await expect
      .poll(() => conditionOf("locked-out", "ConfigurationReady"))
      .toMatchObject({
        status: "False",
        reason: "SourceUpdateFailed",
        message: "Authorization to git server failed",
      });
    await secretOf("typo", login);
    await running("locked-out");
  });

  test.skipIf(noSshReason)(`opens with a key ${noSshReason}`, async () => {
    const begin = Date.now();
    const key = createKeyPair("open sesame");
    await using server = await SshServer.start([key], platform.hostAddress);
    await secretOf("key", {
      key: key.privateKey,
      password: "open sesame",
      known_hosts: server.hostKey,
    });
    await apply("keyed", { url: server.urlOf(repository.directory), ...auth("key", "key") });
    await running("keyed");
    expect(await platform.call("keyed.default")).toMatchObject({ body: "three" });
    const lines = key.privateKey.split("\n").filter((line) => line.length > 60);
    await expectNowhere("keyed", begin, ["open sesame", ...lines]);
  });

  /** In no object but the Secret, in no log, in no blob of the registry, in no other file; the secrets exist since `begin`. */
  async function expectNowhere(name: string, begin: number, secrets: string[]): Promise<void> {
    const objects = await platform.k(
      "get functions,jobs,pods,deployments,events,configmaps -o yaml",
    );
    const jobPods = `-l ${domain}/function-name=${name} -l job-name`;
    const logs = await platform.k(`logs ${jobPods} --all-containers --tail=-1 --ignore-errors`);
    expect(logs).toContain("fetching commit");
    const blobs = platform.registryFiles();
    expect(blobs.length).toBeGreaterThan(3);
    // Volumes of Secrets are where they are to be; all else on disk is not.
    const files = platform.podFiles().filter((file) => !file.includes("/git-credentials/"));
    const ownLog = await platform.log();
    for (const secret of secrets) {
      expect(objects.replace(/kind: Secret[^]*/, "")).not.toContain(secret);
      expect(logs).not.toContain(secret);
      expect(ownLog).not.toContain(secret);
    }
    const holding = changedSince(begin, [...blobs, ...files]).filter((file) => {
      const content = unpacked(file);
      return secrets.some((secret) => content.includes(secret));
    });
    expect(holding).toEqual([]);
  }
});

function unpacked(file: string): Buffer {
  return decompressed(contentOf(file));
}

describe("what is wrong is said:", () => {
  test.each<[string, Record<string, unknown>, string, RegExp]>([
    [
      "a reference that is not there",
      { reference: "nowhere" },
      "ConfigurationReady",
      /^Stop reconciliation, reason: reference not found: "nowhere"/,
    ],
    [
      "a server of this platform",
      { url: "http://127.0.0.2:9/shop.git" },
      "ConfigurationReady",
      /^Sources update failed, reason: source.gitRepository.url leads to an address that Functions are not fetched from/,
    ],
    [
      "a URL of this machine",
      { url: "file:///etc" },
      "ConfigurationReady",
      /^Stop reconciliation, reason: source.gitRepository.url has the scheme file/,
    ],
    [
      "a URL that is a command",
      { url: "ext::sh%20-c%20id" },
      "ConfigurationReady",
      /^Stop reconciliation, reason: source.gitRepository.url/,
    ],
    [
      "a Secret that is not there",
      { auth: { type: "basic", secretName: "nowhere" } },
      "ConfigurationReady",
      /^Sources update failed, reason: Secret nowhere not found in namespace default/,
    ],
    [
      "a folder that is not there",
      { baseDir: "/nowhere" },
      "BuildReady",
      /failed: fetching the source: baseDir "nowhere" does not exist at commit [0-9a-f]{40}/,
    ],
    [
      "a folder outside",
      { baseDir: "/../x" },
      "ConfigurationReady",
      /^Stop reconciliation, reason: baseDir/,
    ],
    [
      "a commit that is not there",
      { reference: "b".repeat(40) },
      "BuildReady",
      /failed: fetching the source: commit b{40} is not in the repository/,
    ],
  ])("%s", async (name, git, type, message) => {
    const functionName = name.replaceAll(" ", "-").toLowerCase();
    await apply(functionName, git);
    await expect
      .poll(() => conditionOf(functionName, type))
      .toMatchObject({ status: "False", message: expect.stringMatching(message) });
    await platform.k(`delete function ${functionName}`);
  });

  test("a Secret of the wrong type", async () => {
    await secretOf("ssh", { "ssh-privatekey": "x" }, "kubernetes.io/ssh-auth");
    await apply("mistyped", { auth: { type: "basic", secretName: "ssh" } });
    await expect
      .poll(() => conditionOf("mistyped", "ConfigurationReady"))
      .toMatchObject({ message: expect.stringContaining("inconsistent secret type") });
  });
});

test("a server behind a Service is found by the Service's name", async () => {
  // The server in the cluster is a Function, which hands requests on to the one on this machine.
  const source = `export default {
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = ["content-type", "content-encoding", "git-protocol"].flatMap((name) =>
        request.headers.has(name) ? [[name, request.headers.get(name)]] : []);
      const body = request.method === "POST" ? await request.arrayBuffer() : undefined;
      const response = await fetch("${open.origin}" + pathname + search, { method: request.method, headers, body });
      const type = response.headers.get("content-type");
      return new Response(await response.arrayBuffer(), { status: response.status, headers: { "content-type": type } });
    },
  };`;
  // In the process sandbox the Pods' addresses are this machine's own.
  await allowGitServers(platform, [platform.hostAddress, "git.default.svc.cluster.local"]);
  await platform.k("apply -f -", functionManifest("git", source));
  await running("git");
  await apply("inside", { url: "http://git.default.svc.cluster.local/shop.git" });
  await running("inside");
  expect(await platform.call("inside.default")).toMatchObject({ status: 200 });
  await apply("lost", { url: "http://no-git.default.svc.cluster.local/shop.git" });
  await expect
    .poll(() => conditionOf("lost", "ConfigurationReady"))
    .toMatchObject({ message: expect.stringContaining("Could not resolve host: no-git.default") });
});

test("a server that goes away leaves the Function as it is, and editable", async () => {
  const host = platform.hostAddress;
  const server = await GitHttpServer.start({ root: repository.root, host });
  const url = `${server.origin}/shop.git`;
  const often = { [`${domain}/git-check-interval`]: "5s" };
  await apply("steady", { url }, often);
  await running("steady");
  await server[Symbol.asyncDispose]();
  await expect
    .poll(() => conditionOf("steady", "ConfigurationReady"))
    .toMatchObject({ status: "False", reason: "SourceUpdateFailed" });
  await platform.k("scale function steady --replicas=2");
  await platform.k("wait --for=jsonpath={.status.replicas}=2 function/steady --timeout=60s");
  expect(await platform.call("steady.default")).toMatchObject({ status: 200, body: "three" });
});

test("links, submodules and files of LFS arrive, and what does not is in an Event", async () => {
  const objects = new LfsObjects();
  objects.serve(open);
  const word = repository.commit({ "word.js": `module.exports = "from a submodule";` }, "word");
  const handler = `const { readFileSync } = require("node:fs");
module.exports = { main: () => [require("./link/a.js"), require("./lib/word.js"), readFileSync(__dirname + "/model.bin", "utf8")].join(", ") };`;
  const modules = [
    `[submodule "lib"]\n\tpath = lib\n\turl = ../shop.git\n`,
    `[submodule "gone"]\n\tpath = gone\n\turl = file:///srv/gone.git\n`,
  ].join("");
  const blob = (text: string) => repository.blob(text);
  const tree = repository.tree([
    ["100644", ".gitattributes", blob("*.bin filter=lfs\n")],
    ["100644", ".gitmodules", blob(modules)],
    ["40000", "code", repository.tree([["100644", "a.js", blob(`module.exports = "by a link";`)]])],
    ["160000", "gone", word],
    ["100644", "handler.js", blob(handler)],
    ["160000", "lib", word],
    ["120000", "link", blob("code")],
    ["100644", "model.bin", blob(objects.add("from LFS"))],
  ]);
  const root = repository.tree([
    ["40000", "app", tree],
    ["120000", "here", blob("app")],
    ["100644", ".gitmodules", blob(modules.replaceAll("path = ", "path = app/"))],
  ]);
  repository.commitTree(root, "whole");
  await apply("whole", { reference: "whole", baseDir: "here" });
  await running("whole");
  expect(await platform.call("whole.default")).toMatchObject({
    body: "by a link, from a submodule, from LFS",
  });
  const events =
    "get events --field-selector reason=SourceIncomplete -o jsonpath={.items[*].message}";
  expect(await platform.k(events)).toBe(
    'submodule "app/gone" is left out: its URL has the scheme file: use https or ssh',
  );
  open.intercept = undefined;
});

describe("a repository that means harm", () => {
  test("has no link out in the image", async () => {
    const link: [string, string, string] = ["120000", "secrets", repository.blob("/etc/passwd")];
    const handler = repository.blob(answering("harmless"));
    const tree = repository.tree([["100644", "handler.js", handler], link]);
    repository.commitTree(tree, "link");
    await apply("link", { reference: "link", baseDir: "/" });
    await expect
      .poll(() => conditionOf("link", "BuildReady"))
      .toMatchObject({
        status: "False",
        message: expect.stringContaining("secrets is a link that leaves the source"),
      });
  });

  test("may have submodules, which stay away, and odd names", async () => {
    const modules = `[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch% /tmp/spry-ran\n`;
    const tree = repository.tree([
      ["100644", "handler.js", repository.blob(answering("harmless"))],
      ["100644", ".gitmodules", repository.blob(modules)],
      ["100644", "odd\nname $(touch x)", repository.blob("odd")],
      ["160000", "s", repository.git(["rev-parse", "main"])],
    ]);
    repository.commitTree(tree, "odd");
    await apply("odd", { reference: "odd", baseDir: "/" });
    await running("odd");
    expect(await platform.call("odd.default")).toMatchObject({ body: "harmless" });
  });
});
