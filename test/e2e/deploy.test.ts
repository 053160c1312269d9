/** `spry deploy`: a directory of many files on either engine, and what is said when it does not work. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { dump, load } from "js-yaml";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { startSpryDev } from "../support/spry-dev.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-deploy-test-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function directory(name: string, files: Record<string, string>): string {
  for (const [file, content] of Object.entries(files)) {
    const place = path.join(home, name, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, content);
  }
  return path.join(home, name);
}

const handler = (text: string) =>
  `import { end } from "./lib/end.js";\nexport default { fetch: () => new Response("${text}" + end + (process.env.MARK ?? "")) };\n`;
const shop = (text: string) => ({
  "handler.js": handler(text),
  "lib/end.js": `export const end = "!";\n`,
  "package.json": `{ "type": "module" }`,
  "spry.yaml": "name: shop\nenv:\n  MARK: yes\n",
  ".env": "TOKEN=secret-of-mine\n",
  "node_modules/x/index.js": "",
});

describe("spry deploy", () => {
  test("makes a directory of files a Function, and sends no secret", async () => {
    const dir = directory("shop", shop("one"));
    const { code, stdout, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(stdout.trim()).toMatch(/^http:\/\/shop\.default\.localhost(:\d+)?\/$/);
    expect(stderr).toContain("not sent, because they may hold secrets: .env");
    expect(await platform.call("shop.default")).toMatchObject({ status: 200, body: "one!yes" });
    const image = await platform.k("get function shop -o jsonpath={.spec.source.image}");
    expect(image).toMatch(/\/default\/shop@sha256:[0-9a-f]{64}$/);
    // Nothing to install and nothing to run: one container builds it.
    const job = "get jobs -l serverless.kyma-project.io/function-name=shop -o jsonpath=";
    expect(await platform.k(`${job}{.items[0].spec.template.spec.initContainers[*].name}`)).toBe(
      "",
    );
    for (const line of stderr.split("\n")) expect(line.length).toBeLessThan(140);
  });

  test("shows what a Function says that does not come to an end of its start", async () => {
    const code = "setInterval(() => {}, 1000);\n";
    const dir = directory("waits", { "handler.js": code, "spry.yaml": "name: waits\n" });
    const { code: exit, stderr } = await platform.spry(["deploy", dir, "--timeout", "25"]);
    expect(stderr).toContain("handler.js has no exports and no listening server yet");
    expect(exit).toBe(1);
    await platform.k("delete function waits --wait=false");
  });

  test("compiles TypeScript that is more than types, and JSX", async () => {
    const dir = directory("tsx", {
      "package.json": `{ "type": "module" }`,
      "tsconfig.json": `{ "compilerOptions": { "paths": { "@lib/*": ["./lib/*"] }, "jsx": "react", "jsxFactory": "h" } }`,
      "lib/word.ts": `export enum Word { One = "one" }\n`,
      "page.tsx": `const h = (tag: string, _: unknown, ...text: string[]) => [tag, ...text].join();\nexport const Page = () => <p>text</p>;\n`,
      "handler.tsx": `import { Word } from "@lib/word";
import { Page } from "./page";

export const main = (event: { extensions: { request: { query: { fail?: string } } } }) => {
  if (event.extensions.request.query.fail === "stack") return new Error("as asked").stack;
  if (event.extensions.request.query.fail) throw new Error("as asked");
  return [Word.One, Page()].join(" ");
};
`,
    });
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(await platform.call("tsx.default")).toMatchObject({ status: 200, body: "one p,text" });
    expect(await platform.call("tsx.default", { path: "/?fail=1" })).toMatchObject({ status: 500 });
    const { stdout } = await platform.spry(["logs", "tsx"]);
    expect(stdout).toContain("handler.tsx:6:");
    const { body } = await platform.call("tsx.default", { path: "/?fail=stack" });
    expect(body).toContain("function/handler.tsx:5:");
    writeFileSync(path.join(dir, "page.tsx"), "export const Page = () => <p>{</p>;\n");
    const broken = await platform.spry(["deploy", dir]);
    expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining("page.tsx:1:") });
    expect(broken.stderr).toContain("nothing was deployed");
    writeFileSync(path.join(dir, "page.tsx"), `export { default as Page } from "./local.json";\n`);
    writeFileSync(path.join(dir, "local.json"), `"secret-of-mine"`);
    writeFileSync(path.join(dir, ".gitignore"), "local.json\n");
    const secret = await platform.spry(["deploy", dir]);
    expect(secret).toMatchObject({ code: 1, stderr: expect.stringContaining("local.json, which") });
    await platform.k("delete function tsx");
  });

  test("brings the packages of the repository around it, and none of their secrets", async () => {
    const root = directory("mono", {
      "package.json": `{ "workspaces": ["apps/*", "shared"] }`,
      "shared/package.json": `{ "name": "@mono/shared", "version": "1.0.0" }`,
      "shared/index.js": `module.exports = "shared, " + require("fs").existsSync(__dirname + "/.env");`,
      "shared/.env": "TOKEN=secret-of-mine\n",
      "apps/around/package.json": `{ "name": "around", "dependencies": { "@mono/shared": "*" } }`,
      "apps/around/handler.js": `exports.main = () => require("@mono/shared");`,
    });
    const { code, stderr } = await platform.spry(["deploy", path.join(root, "apps/around")]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect((await platform.call("around.default")).body).toBe("shared, false");
    expect(await platform.spry(["delete", "around", "--yes"])).toMatchObject({ code: 0 });
  });

  test("builds nothing for a directory that has not changed", async () => {
    const jobs = await platform.k("get jobs -o name");
    const { code, stderr } = await platform.spry(["deploy", path.join(home, "shop")]);
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("unchanged"),
    });
    expect(await platform.k("get jobs -o name")).toBe(jobs);
    expect(await platform.k("get function shop -o jsonpath={.metadata.generation}")).toBe("1");
  });

  // On a cluster, what leads requests to Pods hears of the end of the old ones a moment later.
  test.skipIf(onCluster)("ends when all requests are answered by the new code", async () => {
    const answers = new Set<string>();
    for (const text of ["two", "three", "four", "five"]) {
      const dir = directory("turn", { ...shop(text), "spry.yaml": "name: turn\n" });
      expect(await platform.spry(["deploy", dir])).toMatchObject({ code: 0 });
      for (let round = 0; round < 10; round++)
        answers.add(`${text}: ${(await platform.call("turn.default")).body}`);
    }
    expect([...answers]).toEqual(["two: two!", "three: three!", "four: four!", "five: five!"]);
    await platform.k("delete function turn");
  });

  test("with --json reports what happens to programs, also what fails", async () => {
    const dir = directory("events", {
      "handler.js": "exports.main = () => 1;",
      "package.json": `{ "scripts": { "build": "echo built > made.txt; echo a-line-of-the-build" } }`,
    });
    const reported = async (...args: string[]) => {
      const { code, stdout, stderr } = await platform.spry(["deploy", dir, "--json", ...args]);
      const events = stdout.trim().split("\n");
      return { code, stderr, events: events.map((line) => JSON.parse(line) as object) };
    };
    const good = await reported();
    expect(good).toMatchObject({ code: 0, stderr: "" });
    expect(good.events).toContainEqual(
      expect.objectContaining({ event: "source", function: "events", files: 2 }),
    );
    expect(good.events).toContainEqual(
      expect.objectContaining({ event: "output", line: expect.stringContaining("a-line-of") }),
    );
    expect(good.events.at(-1)).toMatchObject({
      event: "running",
      url: expect.stringContaining("http://events.default."),
      elapsedMs: expect.any(Number),
    });
    directory("events", { "handler.js": "exports.main = nope;" });
    const bad = await reported();
    expect(bad).toMatchObject({ code: 1, stderr: "" });
    expect(bad.events.at(-1)).toMatchObject({
      event: "failed",
      message: expect.stringContaining("handler.js:1: ReferenceError: nope is not defined"),
    });
    await platform.k("delete function events");
  });

  test("takes the place of code that another tool manages only if that is wanted", async () => {
    const other = { apiVersion: "serverless.kyma-project.io/v1alpha2", kind: "Function" };
    const source = { inline: { source: "exports.main = () => 'inline';" } };
    const spec = { runtime: "nodejs24", source };
    const manifest = { ...other, metadata: { name: "taken", namespace: "default" }, spec };
    await platform.k("apply -f -", JSON.stringify(manifest));
    const args = ["deploy", path.join(home, "shop"), "--name", "taken"];
    expect(await platform.spry(args)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has inline code as its source, which another tool manages"),
    });
    expect((await platform.spry([...args, "--force-conflicts"])).code).toBe(0);
    expect(await platform.k("get function taken -o jsonpath={.spec.source.inline}")).toBe("");
    await platform.k("delete function taken");
  });

  test("takes the address of a registry that is forwarded", async () => {
    const dir = path.join(home, "shop");
    const { code, stderr } = await platform.spry([
      "deploy",
      dir,
      "--registry",
      "http://127.0.0.1:9",
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain("the source cannot be sent to the registry http://127.0.0.1:9");
    expect(stderr).toContain("--registry");
  });

  test.skipIf(!onCluster)(
    "names the rights that a port-forward to the cluster's registry needs",
    async () => {
      await platform.k("create serviceaccount deployer");
      await platform.k(
        "create rolebinding deployer --clusterrole=admin --serviceaccount=default:deployer",
      );
      const token = (await platform.k("create token deployer")).trim();
      const config = load(readFileSync(platform.kubeconfig, "utf8")) as { users: object[] };
      config.users = config.users.map((user) => ({ ...user, user: { token } }));
      const file = path.join(home, "deployer.yaml");
      writeFileSync(file, dump(config), { mode: 0o600 });
      const args = ["--kubeconfig", file, "deploy", path.join(home, "shop")];
      const { code, stderr } = await platform.spry(args);
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /you may not forward.* in namespace kyma-system\n.*pods\/portforward/,
        ),
      });
    },
  );

  test("names file, line and column of a syntax error before anything is built", async () => {
    const dir = directory("shop", { "lib/end.js": `export const end = ;\n` });
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect(code).toBe(1);
    expect(stderr).toContain('error: lib/end.js:1:20: Unexpected ";"\n  export const end = ;');
    expect(await platform.k("get function shop -o jsonpath={.metadata.generation}")).toBe("1");
  });

  test("reports in seconds that new code cannot be loaded, and what still serves", async () => {
    const dir = directory("shop", { "lib/end.js": `export const end = missing;\n` });
    const begin = performance.now();
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect(performance.now() - begin).toBeLessThan(30_000);
    expect(code).toBe(1);
    expect(stderr).toContain(
      "error: version 2 of shop failed: lib/end.js:1: ReferenceError: missing is not defined; version 1 still serves",
    );
    expect(await platform.call("shop.default")).toMatchObject({ status: 200, body: "one!yes" });
    const running = `{.status.conditions[?(@.type=="Running")].status}`;
    expect(await platform.k(`get function shop -o jsonpath=${running}`)).toBe("False");
    directory("shop", { ...shop("two") });
    expect((await platform.spry(["deploy", dir])).code).toBe(0);
    expect(
      (await platform.callUntil("shop.default", ({ body }) => body === "two!yes")).status,
    ).toBe(200);
  });

  test("get prints what programs and people need, describe why and what to do", async () => {
    const get = async (...args: string[]) => (await platform.spry(["get", ...args])).stdout.trim();
    expect(await get("-o", "name")).toBe("function/shop");
    expect(await get("shop", "-o", "jsonpath={.spec.runtime} {.metadata.name}")).toBe(
      "nodejs24 shop",
    );
    expect(await get("-o", "wide")).toMatch(/shop +Running +nodejs24 .* directory +[0-9a-f]{12}$/);
    expect(await get("-l", "app=none", "-o", "json")).toContain('"kind": "List"');
    const none = await platform.spry(["get", "-l", "app=none"]);
    expect(none.stderr).toBe("No Functions in namespace default have the labels app=none.\n");
    const printed = await platform.spry(["get", "shop", "-o", "yaml"]);
    expect(printed.stdout).not.toContain("managedFields");
    expect((await platform.spry(["apply", "-f", "-", "--no-wait"], printed.stdout)).code).toBe(0);
    const { stdout } = await platform.spry(["describe", "shop"]);
    expect(stdout).toMatch(/^Name: +shop \(namespace default\)$/m);
    expect(stdout).toMatch(/^Status: +Running, version \d+ serves$/m);
    expect(stdout).toMatch(/^Source: +directory \(sha256:/m);
    expect(stdout).toMatch(/^Instances:\n {2}shop-\S+ +ready/m);
    expect(stdout).toMatch(/^Events:\n/m);
    expect((await platform.spry(["history", "shop"])).stdout).toContain("directory sha256:");
  });

  test("a name that was made of a directory's does not silently become another directory's Function", async () => {
    for (const name of ["My_App", "my-app", "größe"]) {
      mkdirSync(path.join(home, name));
      writeFileSync(path.join(home, name, "handler.js"), `exports.main = () => "${name}";`);
    }
    const deploy = (...args: string[]) => platform.spry(["deploy", ...args]);
    expect(await deploy(path.join(home, "My_App"))).toMatchObject({ code: 0 });
    const asked = await deploy(path.join(home, "my-app"));
    expect(asked).toMatchObject({ code: 1 });
    expect(asked.stderr).toMatch(/came from a directory My_App[^]*--yes/);
    expect((await platform.call("my-app.default")).body).toBe("My_App");
    expect(await deploy(path.join(home, "my-app"), "--yes")).toMatchObject({ code: 0 });
    await platform.callUntil("my-app.default", ({ body }) => body === "my-app");
    const lost = await deploy(path.join(home, "größe"));
    expect(lost.stderr).toMatch(/name größe cannot be that of a Function[^]*`name: gr-e`/);
    expect(await deploy(path.join(home, "größe"), "--name", "size")).toMatchObject({ code: 0 });
    await platform.spry(["delete", "my-app", "size", "--yes"]);
  });

  test("variables and Secrets are set without an editor, and the next deploy has the last word", async () => {
    const must = async (...args: string[]) => {
      const result = await platform.spry(args);
      expect({ args, ...result }).toMatchObject({ code: 0 });
      return result.stdout + result.stderr;
    };
    await must("secrets", "set", "db", "password=hidden");
    writeFileSync(path.join(home, "more.env"), "USER=me\nHOST=there\n");
    await must("secrets", "import", "db", path.join(home, "more.env"));
    const listed = await must("secrets", "list");
    expect(listed).toMatch(/db +HOST, USER, password/);
    expect(listed).not.toContain("hidden");
    expect(await must("env", "set", "shop", "MARK=set", "OTHER=1")).toMatch(/version \d+ serves/);
    expect((await platform.call("shop.default")).body).toMatch(/!set$/);
    expect(await must("env", "list", "shop")).toMatch(/MARK +set\nOTHER +1/);
    expect(await must("env", "set", "shop", "MARK=set")).toContain("has these variables already");
    expect(await must("env", "set", "shop", "OTHER-", "--no-wait")).not.toMatch(/version/);
    await must("deploy", path.join(home, "shop"));
    expect(await must("env", "list", "shop")).toMatch(/^NAME +VALUE\nMARK +yes$/m);
    await must("scale", "shop", "2");
  });

  test("spry dev finds the platform's Functions and Secrets", async () => {
    const dir = directory("caller", {
      "handler.mjs": `export default { async fetch() {
        const response = await fetch("http://shop.default.svc.cluster.local/");
        return new Response(await response.text() + process.env.PASSWORD);
      } };`,
      "spry.yaml": "env:\n  PASSWORD: { secret: dev, key: password }\n",
    });
    await platform.spry(["secrets", "set", "dev", "password=hidden"]);
    const env = { KUBECONFIG: platform.kubeconfig, XDG_CACHE_HOME: path.join(home, "cache") };
    const { url, end } = await startSpryDev([dir], env);
    try {
      expect(await (await fetch(url)).text()).toMatch(/^two!\w+hidden$/);
    } finally {
      await end();
    }
  });

  const mistakes: [string[], string][] = [
    [["logs", "shop", "--tail", "abc"], "abc is not a number"],
    [["logs", "shop", "--since", "yesterday"], "yesterday is not a duration"],
    [["deploy", "--timeout", "abc"], "abc is not a number of seconds"],
    [["get", "-o", "xml"], "unknown output format xml"],
    [["env", "set", "shop", "nonsense"], "nonsense is not a variable"],
    [["env", "set", "shop", "FUNC_RUNTIME=x"], "FUNC_RUNTIME is reserved"],
    [["describe", "nope"], "Function nope not found"],
    [["deploy", "/nonexistent"], "/nonexistent is not a directory"],
  ];
  test.each(mistakes)("spry %s: one sentence", async (args, words) => {
    const { code, stderr } = await platform.spry(args);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    expect(stderr.trim().split("\n").length).toBeLessThanOrEqual(2);
  });

  test("apply -R follows every Function, and one that fails does not hide the others", async () => {
    const manifest = (name: string, source: string) =>
      JSON.stringify({
        apiVersion: "serverless.kyma-project.io/v1alpha2",
        kind: "Function",
        metadata: { name },
        spec: { runtime: "nodejs24", source: { inline: { source } } },
      });
    const dir = directory("many", {
      "bad.json": manifest("bad", "exports.main = nope;"),
      "below/good.json": manifest("good", "exports.main = () => 1;"),
    });
    const { code, stdout, stderr } = await platform.spry(["apply", "-R", "-f", dir]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/function\/bad +failed +version 1 of bad failed: handler\.js:1: /);
    expect(stdout).toMatch(/function\/good +running +http:/);
    expect(stderr).toContain("ReferenceError: nope is not defined");
    const deleted = await platform.spry(["delete", "good", "nope", "bad", "--yes"]);
    expect(deleted.code).toBe(1);
    expect(deleted.stderr).toContain("function/good deleted");
    expect(deleted.stderr).toContain("function/bad deleted");
    expect(deleted.stderr).toContain("Function nope not found");
  });

  test("refuses links out of the directory, and a source in another Function's repository", async () => {
    const dir = directory("linked", { "handler.js": "exports.main = () => 1;" });
    symlinkSync("/etc/hostname", path.join(dir, "host"));
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("host is a symbolic link out of the directory"),
    });
    const image = await platform.k("get function shop -o jsonpath={.spec.source.image}");
    const thief = {
      apiVersion: "serverless.kyma-project.io/v1alpha2",
      kind: "Function",
      metadata: { name: "thief", namespace: "default" },
      spec: { runtime: "nodejs24", source: { image } },
    };
    await platform.k("apply -f -", JSON.stringify(thief));
    await platform.k("wait --for=condition=ConfigurationReady=False function/thief --timeout=30s");
    expect(
      await platform.k("get function thief -o jsonpath={.status.conditions[0].message}"),
    ).toContain("is not in the Function's own repository");
  });
});
