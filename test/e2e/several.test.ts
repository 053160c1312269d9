/** Several Functions in one `spry.yaml`, and several directories: `spry dev`, `spry deploy` and what else takes a directory. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { root, run } from "../support/platform.ts";
import { hasTerminals, inTerminal } from "../support/terminal.ts";
import { type DevProcess, startSpryDev } from "../support/spry-dev.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-several-test-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const running = new Set<DevProcess>();
afterEach(async () => {
  for (const each of running) await each.end();
  running.clear();
});

function write(name: string, files: Record<string, string>): string {
  for (const [file, content] of Object.entries(files)) {
    const place = path.join(home, name, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, content);
  }
  return path.join(home, name);
}

const saying = (text: string) =>
  `module.exports = { main: () => "${text} " + process.env.MARK + process.env.OWN };\n`;
/** Two with a directory each, and one with a file of the common one. The first calls the others. */
const shop = {
  "spry.yaml": `env: { MARK: all, OWN: "" }
functions:
  orders:
  stock:
    env: { OWN: -own }
  mail: { handler: src/mail.ts }
`,
  "orders/handler.js": `const ask = async (url) => (await fetch(url)).text();
module.exports = {
  main: async () => [await ask("http://stock/"), await ask("http://mail.default.svc.cluster.local/")].join(", "),
};
`,
  "stock/handler.js": saying("stock"),
  "src/mail.ts": `export const main = (): string => "mail " + process.env.MARK;\n`,
};
const answer = "stock all-own, mail all";

describe("spry deploy", () => {
  test("makes each of them a Function", async () => {
    const dir = write("shop", shop);
    const { code, stdout, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
      ["NAME", "RESULT"],
      ["orders", "running"],
      ["stock", "running"],
      ["mail", "running"],
      [""],
    ]);
    expect(stdout).toMatch(/^orders +running +http:\/\/orders\.default\.localhost(:\d+)?\/$/m);
    for (const name of ["orders", "stock", "mail"])
      expect(stderr).toMatch(new RegExp(`^  ${name}: ✔ running`, "m"));
    // The gateway knows a new Pod as soon as it is ready; the rules of Pods' networks follow in moments, as on a cluster.
    await platform.callUntil("orders.default", ({ body }) => body === answer);
  });

  test("does nothing for what has not changed", async () => {
    const { code, stderr } = await platform.spry(["deploy", path.join(home, "shop")]);
    expect({ code, unchanged: stderr.match(/unchanged/g)?.length }).toEqual({
      code: 0,
      unchanged: 3,
    });
    for (const name of ["orders", "stock", "mail"])
      expect(await platform.k(`get function ${name} -o jsonpath={.metadata.generation}`)).toBe("1");
  });

  test("one that fails does not hide the others, and the exit code is 1", async () => {
    const broken = {
      "orders/handler.js": "module.exports = {;\n",
      "stock/handler.js": saying("new"),
    };
    const dir = write("shop", broken);
    const { code, stdout, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.any(String) });
    expect(stderr).toContain("error: orders: handler.js:1:19: ");
    expect(stdout).toMatch(/^orders +failed +handler\.js:1:19: /m);
    expect(stdout).toMatch(/^stock +running /m);
    expect((await platform.call("stock.default")).body).toBe("new all-own");
    const { stdout: json, code: failed } = await platform.spry(["deploy", dir, "--json"]);
    const events = json
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string });
    expect(failed).toBe(1);
    expect(events).toContainEqual(
      expect.objectContaining({ event: "failed", object: "function/orders" }),
    );
    expect(events).toContainEqual(expect.objectContaining({ event: "running", function: "mail" }));
  });

  test("takes those that are chosen, the directory of one, and several directories", async () => {
    const dir = write("shop", shop);
    const chosen = await platform.spry(["deploy", dir, "--function", "stock"]);
    expect(chosen.stdout).toMatch(/^http:\/\/stock\.default\.localhost(:\d+)?\/\n$/);
    expect((await platform.call("stock.default")).body).toBe("stock all-own");
    const one = await platform.spry(["deploy", path.join(dir, "stock")]);
    expect(one).toMatchObject({ code: 0, stderr: expect.stringContaining("unchanged") });
    const other = write("other", { "handler.js": saying("other") });
    const both = await platform.spry(["deploy", other, dir, "--function=other", "--function=mail"]);
    expect(both).toMatchObject({ code: 0, stdout: expect.stringMatching(/^other +running/m) });
    expect(both.stdout).toMatch(/^mail +running/m);
    await platform.k("delete function orders stock mail other");
  });

  test("--name is refused", async () => {
    const refused = await platform.spry(["deploy", write("shop", shop), "--name", "x"]);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain("--name is for a directory with one Function");
  });
});

test("spry test runs the tests of each directory, while all of them run", async () => {
  const asking = (name: string, expected: string) => `const assert = require("node:assert");
require("node:test").test("${name} answers", async () => {
  assert.equal(await (await fetch(process.env.SPRY_URL)).text(), "${expected}");
  assert.match(process.env.SPRY_URL_MAIL, /^http:/);
});
`;
  const dir = write("tested", {
    ...shop,
    "orders/orders.test.js": asking("orders", answer),
    "stock/stock.test.js": asking("stock", "stock all-own"),
  });
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const good = await run(process.execPath, [spry, "test", dir]);
  expect(good).toMatchObject({ code: 0 });
  for (const name of ["orders", "stock"]) expect(good.stdout).toContain(`${name} answers`);
  expect(good.stderr).not.toContain("mail:");
  write("tested", { "orders/orders.test.js": asking("orders", "something else") });
  const bad = await run(process.execPath, [spry, "test", dir]);
  expect(bad).toMatchObject({ code: 1, stdout: expect.stringContaining("stock answers") });
});

test("spry test and the Function find TypeScript by the names of JavaScript", async () => {
  const script = `"scripts": { "test": "node --test" }`;
  for (const manifest of [`{ "type": "module" }`, `{ "type": "module", ${script} }`]) {
    const dir = write("nodenext", {
      "package.json": manifest,
      "handler.ts": `import { text } from "./lib/text.js";\nexport const main = (): string => text;\n`,
      "lib/text.ts": `export const text: string = "hello";\n`,
      "handler.test.ts": `import assert from "node:assert";
import { test } from "node:test";
import { text } from "./lib/text.js";
test("one text", async () => assert.equal(await (await fetch(process.env.SPRY_URL ?? "")).text(), text));
`,
    });
    const result = await run(process.execPath, [
      path.join(root, "packages/cli/bin/spry.mjs"),
      "test",
      dir,
    ]);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("pass 1") });
  }
});

test("spry init --template pair has two, and a test that they pass", async () => {
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const dir = path.join(home, "pair-of-mine");
  const created = await run(process.execPath, [spry, "init", dir, "--template", "pair"]);
  expect(created).toMatchObject({ code: 0 });
  const tested = await run(process.execPath, [spry, "test", dir]);
  expect(tested).toMatchObject({ code: 0, stdout: expect.stringContaining("pass 1") });
});

test("the directory of an ejected Function is that of its name", async () => {
  const dir = write("ejected", shop);
  expect(await platform.spry(["deploy", dir, "--function", "stock"])).toMatchObject({ code: 0 });
  const to = path.join(home, "out");
  expect(await platform.spry(["eject", "stock", "--source", dir, "--dir", to])).toMatchObject({
    code: 0,
  });
  expect(readFileSync(path.join(to, "function/handler.js"), "utf8")).toBe(saying("stock"));
  await platform.k("delete function stock");
});

describe("spry dev", () => {
  const start = async (...args: string[]) => {
    const env = { XDG_CACHE_HOME: path.join(home, "cache"), KUBECONFIG: "/nonexistent" };
    const started = await startSpryDev(args, env);
    running.add(started);
    await expect.poll(() => started.output()).toMatch(/Ctrl-C ends it/);
    const urls = [...started.output().matchAll(/^ +\d+ +(\S+) +(http:\S+)/gm)];
    return {
      ...started,
      urls: Object.fromEntries(
        urls.map(([, name = "", url = ""]) => [name, url.replace("localhost", "127.0.0.1")]),
      ),
    };
  };
  const ask = async (url = "") => {
    const response = await fetch(url);
    return { status: response.status, body: await response.text() };
  };

  test("runs all of them, which find each other", async () => {
    const { urls, output, end } = await start(write("all", shop));
    expect(Object.keys(urls)).toEqual(["orders", "stock", "mail"]);
    expect(await ask(urls["orders"])).toEqual({ status: 200, body: answer });
    expect(output()).toMatch(/^stock {2}│ GET \/ 200 /m);
    expect(await end()).toBe(130);
  });

  test("one that is broken does not stop the others, and a saved file repairs it", async () => {
    const dir = write("broken", { ...shop, "orders/handler.js": "module.exports = {;\n" });
    const { urls, output } = await start(dir);
    expect(output()).toMatch(/^ +1 +orders +http:\S+ +✘ not loaded$/m);
    expect(output()).toMatch(/^orders │ ✘ handler\.js:1: /m);
    expect((await ask(urls["orders"])).status).toBe(500);
    expect((await ask(urls["stock"])).body).toBe("stock all-own");
    write("broken", { "orders/handler.js": shop["orders/handler.js"] });
    await expect.poll(() => ask(urls["orders"])).toEqual({ status: 200, body: answer });
  });

  test("changed settings apply to those that have them, and one that is added is named", async () => {
    const dir = write("settings", shop);
    const { urls, output } = await start(dir);
    const text = readFileSync(path.join(dir, "spry.yaml"), "utf8");
    write("settings", { "spry.yaml": text.replace("OWN: -own", "OWN: -new") });
    await expect.poll(async () => (await ask(urls["stock"])).body).toBe("stock all-new");
    expect(output()).toMatch(/^stock {2}│ ✔ new code answers/m);
    expect(output()).not.toMatch(/^orders │ ✔ new code answers/m);
    write("settings", { "spry.yaml": `${text}  late: { directory: stock }\n` });
    await expect
      .poll(() => output())
      .toContain("now has late, too: start spry dev again to run it");
    write("settings", { "spry.yaml": `${text}  late: [\n` });
    await expect.poll(() => output()).toContain("keep the settings that they have");
    expect((await ask(urls["stock"])).body).toBe("stock all-own");
  });

  test("one without a handler answers with that until it has one", async () => {
    const dir = write("empty", {
      ...shop,
      "late/notes.txt": "",
      "spry.yaml": `${shop["spry.yaml"]}  late:\n`,
    });
    const { urls, output } = await start(dir);
    expect(await ask(urls["late"])).toMatchObject({
      status: 500,
      body: expect.stringContaining("has no handler"),
    });
    expect(output()).toMatch(/^late {3}│ ✘ .*has no handler/m);
    expect((await ask(urls["stock"])).status).toBe(200);
    write("empty", { "late/handler.js": saying("late") });
    await expect.poll(async () => (await ask(urls["late"])).body).toBe("late all");
    // From then on as any other.
    write("empty", { "late/handler.js": saying("later") });
    await expect.poll(async () => (await ask(urls["late"])).body).toBe("later all");
  });

  test.skipIf(!hasTerminals)("in a terminal of 80 columns a digit chooses one", async () => {
    const env = { XDG_CACHE_HOME: path.join(home, "cache"), KUBECONFIG: "/nonexistent" };
    const dev = inTerminal(["dev", write("keys", shop), "--port", "0"], { cwd: home, env });
    await dev.shows(/keys: 1-3 choose a Function \(now orders\)/);
    dev.type("2");
    await dev.shows(/the keys o, e and c now act on stock/);
    dev.type("e");
    await dev.shows(/stock {2}│ POST \/ 200/);
    dev.type("r");
    for (const name of ["orders", "stock", "mail"])
      await dev.shows(new RegExp(`^${name} *│ ✔ new code answers`, "m"));
    dev.type("\u0003");
    expect(await dev.ended).toBe(130);
    for (const line of dev.output().split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  test("several directories run as well, and a taken port is refused", async () => {
    const shopping = write("pair", shop);
    const other = write("other", { "handler.js": saying("other") });
    const { urls } = await start(shopping, other, "--function", "stock", "--function", "other");
    expect(Object.keys(urls)).toEqual(["stock", "other"]);
    const { port } = new URL(urls["stock"] ?? "");
    const spry = path.join(root, "packages/cli/bin/spry.mjs");
    const refused = await run(process.execPath, [spry, "dev", shopping, "--port", port]);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain(`port ${port} is in use by another program`);
  });
});
