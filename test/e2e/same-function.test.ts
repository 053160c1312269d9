/** `spry dev` and `spry test` see the Function that `spry deploy` sends: the same files, packages and interpreter. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findPython } from "@spry/machine";
import { endChild } from "@spry/test-kit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { answerOfOwnModules, ownModules } from "../support/own-modules.ts";
import { cleanEnvironment, root, run } from "../support/platform.ts";
import { type DevProcess, startSpryDev } from "../support/spry-dev.ts";

const spry = path.join(root, "packages/cli/bin/spry.mjs");
const python = (await findPython("3.12"))
  ? "python312"
  : (await findPython("3.14"))
    ? "python314"
    : undefined;
let home = "";
let dev: DevProcess | undefined;
beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), "spry-same-"));
});
afterEach(async () => {
  await dev?.end();
  dev = undefined;
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const directory = (name: string) => path.join(home, name);

function write(name: string, files: Record<string, string>): void {
  for (const [file, text] of Object.entries(files)) {
    const place = path.join(directory(name), file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
}

const environment = () => ({
  XDG_CACHE_HOME: path.join(home, "cache"),
  KUBECONFIG: "/nonexistent",
});

async function answer(name: string): Promise<string> {
  dev = await startSpryDev([directory(name)], environment());
  return (await fetch(dev.url)).text();
}

function isRunning(pid: number): boolean {
  try {
    // A process that has ended and has not been waited for is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

const tested = (name: string) => run(process.execPath, [spry, "test", directory(name)]);

test.skipIf(!python)("packages of pyproject.toml are installed, for tests as well", async () => {
  write("project", {
    "spry.yaml": `runtime: ${python}\n`,
    "pyproject.toml": '[project]\nname = "fn"\nversion = "1"\ndependencies = ["idna==3.10"]\n',
    "handler.py": "import idna\ndef main(event, context):\n    return idna.__version__\n",
    "test_handler.py":
      "import os, unittest, urllib.request\nimport idna\nclass Case(unittest.TestCase):\n    def test(self):\n" +
      '        body = urllib.request.urlopen(os.environ["SPRY_URL"]).read().decode()\n' +
      "        self.assertEqual(body, idna.__version__)\n",
  });
  expect(await answer("project")).toBe("3.10");
  expect(await tested("project")).toMatchObject({ code: 0, stderr: expect.stringContaining("OK") });
});

test.skipIf(!python)("requirements that others include are installed", async () => {
  write("included", {
    "spry.yaml": `runtime: ${python}\n`,
    "requirements.txt": "-r reqs/base.txt\n-c pins.txt\n",
    "reqs/base.txt": "idna\n",
    "pins.txt": "idna==3.9\n",
    "handler.py": "import idna\ndef main(event, context):\n    return idna.__version__\n",
  });
  expect(await answer("included")).toBe("3.9");
});

test.skipIf(!python)("files named as modules of the standard library are its own", async () => {
  write("own-modules", ownModules(python ?? ""));
  expect(await answer("own-modules")).toBe(answerOfOwnModules);
  expect(await tested("own-modules")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("OK"),
  });
});

test("an archive that package.json names is installed", async () => {
  write("made", {
    "package.json": '{ "name": "made", "version": "1.2.3" }',
    "index.js": "module.exports = 'made';",
  });
  write("archive", {
    "package.json": '{ "dependencies": { "made": "file:./vendor/made-1.2.3.tgz" } }',
    "handler.js": "exports.main = () => require('made');\n",
    "vendor/.keep": "",
  });
  execFileSync("npm", ["pack", "--pack-destination", path.join(directory("archive"), "vendor")], {
    cwd: directory("made"),
    stdio: "ignore",
  });
  expect(await answer("archive")).toBe("made");
});

test("the directory's own install scripts have its files, and a save of code does not run them again", async () => {
  const handlerOf = (word: string) =>
    `import made from "made";\nimport part from "part";\nenum Way { In = "${word}" }\nexport const main = (): string => Way.In + made + part.word;\n`;
  write("part", {
    "package.json": '{ "name": "part", "version": "1.0.0" }',
    "index.js": "exports.word = 'part';",
  });
  write("scripts", {
    "package.json": JSON.stringify({
      dependencies: { part: "file:./part-1.0.0.tgz" },
      scripts: { postinstall: "node tools/make.js" },
    }),
    "schema.txt": "schema",
    "tools/make.js": `const fs = require("fs");
fs.appendFileSync(${JSON.stringify(path.join(home, "made.txt"))}, "made ");
fs.mkdirSync("node_modules/made");
fs.writeFileSync("node_modules/made/index.js", "module.exports = " + JSON.stringify(fs.readFileSync("schema.txt", "utf8")));\n`,
    "handler.ts": handlerOf("in"),
  });
  execFileSync("npm", ["pack", "--pack-destination", directory("scripts")], {
    cwd: directory("part"),
    stdio: "ignore",
  });
  expect(await answer("scripts")).toBe("inschemapart");
  write("scripts", {
    "handler.ts": handlerOf("new"),
  });
  await expect.poll(async () => (await fetch(dev?.url ?? "")).text()).toBe("newschemapart");
  expect(readFileSync(path.join(home, "made.txt"), "utf8")).toBe("made ");
});

test.each<[what: string, files: Record<string, string>]>([
  [
    "a module where package.json says commonjs",
    {
      "package.json": '{ "type": "commonjs" }',
      "handler.ts": 'import { word } from "./lib";\nexport const main = (): string => word;\n',
      "lib.ts": 'export const word: string = "here";\n',
    },
  ],
  [
    "a fetch handler of that kind",
    {
      "package.json": '{ "type": "commonjs" }',
      "handler.js": 'export default { fetch: () => new Response("here") };\n',
    },
  ],
  [
    "an enum and JSON that JavaScript imports",
    {
      "handler.js":
        'import { A } from "./a.ts";\nimport b from "./b.json";\nexport const main = () => A.B + b.c;\n',
      "a.ts": 'export enum A { B = "he" }\n',
      "b.json": '{ "c": "re" }',
    },
  ],
  [
    "TypeScript that is required without its extension",
    {
      "handler.js": 'const { word } = require("./lib");\nexports.main = () => word;\n',
      "lib.ts": 'exports.word = "here" as string;\n',
    },
  ],
])("%s runs as compilers take it", async (what, files) => {
  const name = `kind-${what.length}`;
  write(name, files);
  expect(await answer(name)).toBe("here");
});

test("ended while npm installs, it leaves no script of a package running", async () => {
  write("slow", {
    "package.json": JSON.stringify({
      name: "slow",
      version: "1.0.0",
      scripts: { postinstall: "sleep 300 & echo $! > $PID_FILE; sleep 300" },
    }),
  });
  write("installing", {
    "package.json": '{ "dependencies": { "slow": "file:./slow-1.0.0.tgz" } }',
    "handler.js": "exports.main = () => 1;\n",
  });
  execFileSync("npm", ["pack", "--pack-destination", directory("installing")], {
    cwd: directory("slow"),
    stdio: "ignore",
  });
  const pidFile = path.join(home, "pid");
  const child = spawn(process.execPath, [spry, "dev", "--port", "0", directory("installing")], {
    env: { ...cleanEnvironment(), ...environment(), PID_FILE: pidFile },
    stdio: "ignore",
  });
  await expect
    .poll(() => existsSync(pidFile) && readFileSync(pidFile, "utf8").trim())
    .toMatch(/^\d+$/);
  const pid = Number(readFileSync(pidFile, "utf8"));
  expect(await endChild(child, "SIGINT")).toBe(130);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test("a login of the kubeconfig that takes long does not keep a directory from running", async () => {
  write("login", {
    "handler.js": "exports.main = () => 'here';\n",
    config: `apiVersion: v1
kind: Config
current-context: slow
contexts: [{ name: slow, context: { cluster: slow, user: slow } }]
clusters: [{ name: slow, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: slow, user: { exec: { apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ["60"], interactiveMode: Never } } }]
`,
  });
  const begin = performance.now();
  const variables = { ...environment(), KUBECONFIG: path.join(directory("login"), "config") };
  dev = await startSpryDev([directory("login")], variables);
  expect(await (await fetch(dev.url)).text()).toBe("here");
  expect(performance.now() - begin).toBeLessThan(50_000);
  expect(dev.output()).toContain("has not answered within 2 s");
});

test.each([
  ["spry test", `node ${JSON.stringify(spry)} test`],
  ["a script that leads there", "npm run again"],
])("where the test script is %s, the tests run once", async (_what, script) => {
  const name = `again-${script.length}`;
  write(name, {
    "package.json": JSON.stringify({
      scripts: { test: script, again: `node ${JSON.stringify(spry)} test` },
    }),
    "handler.js": "exports.main = () => 'here';\n",
    "handler.test.js":
      "const { test } = require('node:test');\nconst { appendFileSync } = require('node:fs');\n" +
      "test('it', async () => { appendFileSync('../runs.txt', await (await fetch(process.env.SPRY_URL)).text() + ' '); });\n",
  });
  rmSync(path.join(home, "runs.txt"), { force: true });
  expect(await tested(name)).toMatchObject({ code: 0 });
  expect(readFileSync(path.join(home, "runs.txt"), "utf8")).toBe("here ");
});
