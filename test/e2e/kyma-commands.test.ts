/** The original's command line by its own documentation: what it writes, what belongs together, and what it runs. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { load } from "js-yaml";
import { hasEnded } from "@spry/test-kit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { pause, Platform, root } from "../support/platform.ts";

const platform = new Platform();
const home = mkdtempSync(path.join(tmpdir(), "spry-kyma-"));
beforeAll(() => platform.start(), 120_000);
afterAll(async () => {
  await platform.remove();
  rmSync(home, { recursive: true, force: true });
});

function write(files: Record<string, string>): void {
  for (const [file, content] of Object.entries(files)) {
    const place = path.join(home, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, content);
  }
}
const at = (file: string): string => path.join(home, file);
const namesOf = async (kind: string) =>
  (await platform.k(`get ${kind} -n orders -o jsonpath={.items[*].metadata.name}`))
    .split(" ")
    .filter(Boolean);

const config = `schemaVersion: v1
name: shop
runtime: nodejs24
source:
  sourceType: inline
  sourcePath: src
  sourceHandlerName: shop.js
env:
  - { name: LIMIT, value: 7 }
`;
const children = `subscriptions:
  - { name: shop-orders, typeMatching: exact, source: web, types: [order.created.v1] }
  - { name: shop-returns, typeMatching: exact, source: web, types: [order.returned.v1] }
apiRules:
  - service: { host: shop }
    rules:
      - path: /public/.*
        methods: [GET]
`;
const handler = "module.exports = { main: () => `limit ${process.env.LIMIT}` };";

test("subscriptions and APIRules belong to their Function: what the file no longer has is deleted", async () => {
  await platform.k("create namespace orders");
  write({ "config.yaml": config + children, "src/shop.js": handler });
  const apply = (...options: string[]) =>
    platform.spry(["-n", "orders", "apply", "-f", at("config.yaml"), ...options]);
  expect(await apply()).toMatchObject({ code: 0 });
  expect((await platform.call("shop.orders")).body).toBe("limit 7");
  expect(await namesOf("subscriptions")).toEqual(["shop-orders", "shop-returns"]);
  const sink = await platform.k("get subscription shop-orders -n orders -o jsonpath={.spec.sink}");
  expect(sink).toBe("http://shop.orders.svc.cluster.local");
  // What could not be changed is still the file's.
  write({ "config.yaml": config + children.replace("host: shop", "host: a b") });
  expect(await apply("--no-wait")).toMatchObject({ code: 1 });
  expect(await namesOf("apirules")).toEqual(["shop"]);
  // Another command's APIRule is not the file's.
  const exposed = ["-n", "orders", "expose", "shop", "--host", "other", "--no-wait"];
  await platform.k("delete apirule shop -n orders");
  expect(await platform.spry(exposed)).toMatchObject({ code: 0 });

  write({ "config.yaml": config + children.split("\n").slice(0, 2).join("\n") });
  const dry = await apply("--dry-run");
  expect(dry.stderr).toContain("subscription/shop-returns deleted (dry run)");
  expect(await namesOf("subscriptions")).toEqual(["shop-orders", "shop-returns"]);
  const removing = await apply();
  expect(removing).toMatchObject({ code: 0 });
  expect(removing.stdout).toMatch(/^subscription\/shop-returns +deleted/m);
  expect(await namesOf("subscriptions")).toEqual(["shop-orders"]);
  expect(await namesOf("apirules")).toEqual(["shop"]);

  // Sent as a directory, it has no Subscription.
  const deployed = await platform.spry(["-n", "orders", "deploy", home, "--force-conflicts"]);
  expect(deployed.stderr).toContain("subscriptions and apiRules are objects of their own");

  const dryDelete = await platform.spry(["-n", "orders", "delete", "shop", "--dry-run"]);
  expect(dryDelete).toMatchObject({ code: 0, stderr: "function/shop deleted (dry run)\n" });
  expect(await namesOf("functions")).toEqual(["shop"]);
  expect(await platform.spry(["-n", "orders", "delete", "shop", "--yes"])).toMatchObject({
    code: 0,
  });
  while ((await namesOf("subscriptions")).length > 0) await pause(50);
});

test("what --dry-run prints can be kept in a repository: it is what the file says, and no object of a cluster's", async () => {
  write({ "kept/config.yaml": config + children, "kept/src/shop.js": handler });
  const file = at("kept/config.yaml");
  const printed = (await platform.spry(["apply", "-f", file, "--dry-run", "-o", "yaml"])).stdout;
  expect(printed).toMatch(/kind: Function[^]*kind: Subscription[^]*kind: APIRule/);
  expect(printed).not.toMatch(/status:|uid:|ownerReferences:|creationTimestamp:|last-modifier/);
  expect(printed).toContain(`source: '${handler}'`);
});

test("--onerror purge says of everything that it is gone, --output none says nothing, and times are durations", async () => {
  const none = ["-o", "none", "-t", "1m30s"];
  write({ "gone/config.yaml": config + children.replace("host: shop", "host: a b") });
  write({ "gone/src/shop.js": handler });
  const apply = (...options: string[]) =>
    platform.spry(["apply", "-f", at("gone/config.yaml"), ...options]);
  const purged = await apply("--onerror", "purge");
  expect(purged).toMatchObject({ code: 1 });
  expect(purged.stderr).toContain("function/shop deleted again");
  expect(purged.stdout).toMatch(/^function\/shop +deleted again$/m);
  expect(purged.stdout).toMatch(/^subscription\/shop-orders +deleted again$/m);
  write({ "gone/config.yaml": config });
  expect(await apply(...none)).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await apply("-t", "500us", "--no-wait")).toMatchObject({ code: 0 });
  expect((await apply("-t", "1 parsec")).stderr).toContain("write it as in --timeout 60");
});

test("function init and create, as the current version of the original has them", async () => {
  const init = await platform.spry(["function", "init", "python", "--dir", at("py")]);
  expect(init).toMatchObject({ code: 0 });
  expect(readdirSync(at("py")).sort()).toEqual(["handler.py", "requirements.txt"]);
  expect(init.stdout).toContain("function create python my-function --source ");

  write({ "one/handler.js": handler, "one/package.json": '{ "dependencies": {} }' });
  const files = ["--source", at("one/handler.js"), "--dependencies", at("one/package.json")];
  const create = (...words: string[]) =>
    platform.spry(["-n", "orders", "function", "create", ...words]);
  const more = ["--env", "LIMIT=9", "--env", "A=b=c", "--secret-mount", "keys=/keys"];
  const dry = await create("nodejs", "made", ...files, ...more, "--dry-run", "-o", "yaml");
  expect(load(dry.stdout)).toMatchObject({
    metadata: { name: "made", namespace: "orders" },
    spec: {
      runtime: "nodejs24",
      env: [
        { name: "LIMIT", value: "9" },
        { name: "A", value: "b=c" },
      ],
      secretMounts: [{ secretName: "keys", mountPath: "/keys" }],
      source: { inline: { source: handler, dependencies: '{ "dependencies": {} }' } },
    },
  });
  expect(await namesOf("functions")).not.toContain("made");
  expect(await create("made", ...files, "--env", "LIMIT=9")).toMatchObject({ code: 0 });
  expect((await platform.call("made.orders")).body).toBe("limit 9");

  const old = await create(
    "nodejs",
    "old",
    "--version",
    "22",
    "--replicas",
    "2",
    "--dry-run",
    "-o",
    "json",
  );
  expect(JSON.parse(old.stdout)).toMatchObject({ spec: { runtime: "nodejs22", replicas: 2 } });
  const python = ["python", "p", "--runtime-image-override", "a/b:1", "--istio-injection"];
  const other = await create(...python, "--dry-run", "-o", "json");
  expect(JSON.parse(other.stdout)).toMatchObject({
    spec: {
      runtime: "python312",
      runtimeImageOverride: "a/b:1",
      labels: { "sidecar.istio.io/inject": "true" },
    },
  });
  for (const [words, message] of [
    [["nodejs"], "the name of the Function is missing"],
    [["ruby", "x"], "ruby is not a language of Functions"],
    [["x", "--env", "A"], "A is not a variable"],
    [["x", "--secret-mount", "keys"], "keys is not a mount"],
    [["x", "--source", "nope.js"], "the file nope.js does not exist"],
  ] as const)
    expect((await create(...words)).stderr).toContain(message);
});

test("sync writes into the directory of the same Function, and into no other's", async () => {
  write({ "own/config.yaml": `${config}namespace: orders\n`, "own/src/shop.js": handler });
  await platform.spry(["apply", "--no-wait", "-f", at("own/config.yaml")]);
  const changed = "exports.main = () => 'changed';";
  const apiVersion = "serverless.kyma-project.io/v1alpha2";
  const metadata = { name: "shop", namespace: "orders" };
  const spec = { runtime: "nodejs24", source: { inline: { source: changed } } };
  const manifest = JSON.stringify({ apiVersion, kind: "Function", metadata, spec });
  await platform.spry(["apply", "--no-wait", "-f", "-"], manifest);
  const sync = () => platform.spry(["-n", "orders", "sync", "function", "shop", "-d", at("own")]);
  expect(await sync()).toMatchObject({ code: 0 });
  expect(readFileSync(at("own/handler.js"), "utf8")).toBe(changed);
  write({ "own/config.yaml": config.replace("name: shop", "name: other") });
  expect((await sync()).stderr).toContain("already has config.yaml, handler.js");
});

test.each([
  ["the file of another name, whose code is below", ["-f", "other.yaml"]],
  ["the file of this directory, for code in another", ["-d", "src"]],
])("run takes %s", async (_name, options) => {
  const dir = `run-${options[0]?.slice(1)}`;
  const file = options[0] === "-f" ? "other.yaml" : "config.yaml";
  write({ [`${dir}/${file}`]: config, [`${dir}/src/shop.js`]: handler });
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const child = spawn(process.execPath, [spry, "run", "-p", "0", ...options], { cwd: at(dir) });
  onTestFinished(() => void child.kill("SIGINT"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  while (!/ at http:\S+/.test(output) && !hasEnded(child)) await pause(20);
  const [, url = ""] = / at (http:\S+)/.exec(output) ?? [output];
  expect(await (await fetch(url)).text()).toBe("limit 7");
});

test("what a config.yaml cannot say is not left out silently", async () => {
  const refused = await platform.spry(["init", at("plain"), "--runtime-image-override", "a/b:1"]);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("--runtime-image-override is a key of a config.yaml"),
  });
  const manifest = `apiVersion: serverless.kyma-project.io/v1alpha2
kind: Function
metadata: { name: scaled }
spec:
  runtime: nodejs24
  scaleConfig: { minReplicas: 1, maxReplicas: 3 }
  secretMounts: [{ secretName: keys, mountPath: /keys }]
  source: { inline: { source: "module.exports = { main: () => 1 };" } }
`;
  await platform.spry(["apply", "--no-wait", "-f", "-"], manifest);
  const synced = await platform.spry(["sync", "scaled", "-d", at("synced")]);
  expect(synced).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("config.yaml has no keys for scaleConfig, secretMounts"),
  });
});
