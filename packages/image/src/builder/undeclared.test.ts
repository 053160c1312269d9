/** Packages that Functions use without declaring them, because the images of the system before had them. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { type Files, given, write } from "../testing/build.ts";
import { type NpmPackage, startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { type SourceFile } from "./function-source.ts";
import { undeclaredIn } from "./undeclared.ts";
import { messageOf, UserError } from "./user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const answering = (text: string, manifest: NpmPackage["manifest"] = {}): NpmPackage => ({
  manifest,
  files: { "index.js": `module.exports = "${text}";` },
});
const packages = {
  "axios@0.26.1": answering("axios 0"),
  "axios@1.7.0": answering("axios 1"),
  "axios@2.0.0": answering("axios 2"),
  "mz@2.7.0": { files: { "fs.js": 'module.exports = "mz";' } },
  "greeting@1.0.0": answering("hello"),
  "client@1.0.0": answering("client", { dependencies: { axios: "^0.26.0" } }),
  "scripted@1.0.0": {
    manifest: { scripts: { install: "echo 'module.exports=1' > made.js" }, hasInstallScript: true },
    files: {},
  },
  "broken@1.0.0": {
    manifest: { scripts: { install: "exit 3" }, hasInstallScript: true },
    files: { "index.js": "" },
  },
  "compiler@1.0.0": {
    manifest: { bin: { compile: "compile.js" } },
    files: {
      "compile.js": `#!/usr/bin/env node
require("fs").writeFileSync("made.js", "console.log('built with " + require("axios") + "')");`,
    },
  },
};

const prints = 'console.log(require("axios"));';
const declaring = (dependencies: Record<string, string>, more = {}) =>
  JSON.stringify({ name: "fn", version: "1.0.0", dependencies, ...more });
const added = (name: string, range: string) =>
  `${name} is not among the Function's dependencies: added ${name}@${range}, as in Kyma's images; declare it to choose a version`;
const addedAxios = added("axios", "^1.3.3");

/** A lock file as npm writes it, of packages without dependencies. */
const lockOf = (dependencies: Record<string, string>, version = "1.0.0") =>
  JSON.stringify({
    name: "fn",
    version: "1.0.0",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "fn", version: "1.0.0", dependencies },
      ...Object.fromEntries(
        Object.keys(dependencies).map((name) => [`node_modules/${name}`, { version }]),
      ),
    },
  });

const rows: { is: string; files: Files; says: string[]; prints: string }[] = [
  {
    is: "is added to a Function without a package.json",
    files: { "handler.js": prints },
    says: [addedAxios],
    prints: "axios 1",
  },
  {
    is: "is added to an empty package.json, in an ES module too, by a path in the package",
    files: {
      "handler.js": `import axios from "axios";\nimport mz from 'mz/fs.js';\nconsole.log(axios, mz)`,
      "package.json": '{"type":"module"}',
    },
    says: [addedAxios, added("mz", "^2.7.0")],
    prints: "axios 1 mz",
  },
  {
    is: "is added beside what is declared, also for another file",
    files: {
      "handler.js": `console.log(require("./lib/call.cjs"), require("greeting"))`,
      "lib/call.cjs": `module.exports = require("axios")`,
      "package.json": declaring({ greeting: "1" }),
    },
    says: [addedAxios],
    prints: "axios 1 hello",
  },
  {
    is: "is added to what is locked, which stays as it is",
    files: {
      "handler.js": `console.log(require("axios"), require("greeting"))`,
      "package.json": declaring({ greeting: "1" }),
      "package-lock.json": lockOf({ greeting: "1" }),
    },
    says: [addedAxios],
    prints: "axios 1 hello",
  },
  {
    is: "has the version that is declared",
    files: { "handler.js": prints, "package.json": declaring({ axios: "2" }) },
    says: [],
    prints: "axios 2",
  },
  {
    is: "has the version that another package brings",
    files: { "handler.js": prints, "package.json": declaring({ client: "1" }) },
    says: [],
    prints: "axios 0",
  },
  {
    is: "is the source's own where it is a workspace",
    files: {
      "handler.js": prints,
      "package.json": declaring({}, { workspaces: ["own/*"] }),
      "own/axios/package.json": '{"name":"axios","version":"1.0.0"}',
      "own/axios/index.js": 'module.exports = "own axios"',
    },
    says: [],
    prints: "own axios",
  },
  {
    is: "is added where only development has it",
    files: {
      "handler.js": prints,
      "package.json": declaring({}, { devDependencies: { axios: "2" } }),
    },
    says: [addedAxios],
    prints: "axios 1",
  },
  {
    is: "stays beside packages with scripts, also where what is optional fails",
    files: {
      "handler.js": `console.log(require("axios"), require("scripted/made.js"))`,
      "package.json": declaring({ scripted: "1" }, { optionalDependencies: { broken: "1" } }),
    },
    says: [addedAxios],
    prints: "axios 1 1",
  },
  {
    is: "is there for a build script, too",
    files: {
      "handler.js": `require("axios"); require("./made.js")`,
      "package.json": declaring(
        {},
        { scripts: { build: "compile" }, devDependencies: { compiler: "1" } },
      ),
    },
    says: [addedAxios],
    prints: "built with axios 1",
  },
];

test.each(rows)("a package that Kyma's images have $is", async ({ files, says, prints }) => {
  const { npmConfig } = await startNpmRegistry({ packages });
  const { build, client, lines } = await given(files, { npmConfig });
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  expect(lines.filter((line) => line.includes("declare"))).toEqual(says);
  const home = join(dir, "usr/src/app/function");
  const output = execFileSync(process.execPath, [join(home, "handler.js")], { encoding: "utf8" });
  expect(output).toBe(`${prints}\n`);
  const lock = join(home, "package-lock.json");
  if (existsSync(lock)) expect(readFileSync(lock, "utf8")).toBe(files["package-lock.json"]);
});

test.each<[string, Files]>([
  ["names none", { "handler.js": `module.exports = { main: () => "axios" };` }],
  ["names it in its tests alone", { "handler.js": "", "test/a.js": prints, "a.test.mjs": prints }],
  ["names it in another kind of file", { "handler.js": "", "README.md": prints }],
  [
    "has it in a folder that declares it itself",
    { "handler.js": "", "tool/a.js": prints, "tool/package.json": declaring({ axios: "1" }) },
  ],
])("a Function that %s is built without npm", async (_, files) => {
  const { npmConfig, requests } = await startNpmRegistry({ packages });
  const { build, lines } = await given(files, { npmConfig });
  await buildFunctionImage(build);
  expect(requests()).toBe(0);
  expect(lines).toEqual([expect.stringMatching(/^pushing source layer /)]);
});

test("is installed once: an edit of the code installs nothing, and taking it out makes another image", async () => {
  const { npmConfig, requests } = await startNpmRegistry({ packages });
  const { build, client } = await given({ "handler.js": prints }, { npmConfig });
  await buildFunctionImage(build);
  const asked = requests();
  expect(asked).toBeGreaterThan(0);
  write(build.source, { "handler.js": `${prints} // edited` });
  const edited = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
  expect((await client.resolveImage(edited.image)).manifest.layers).toHaveLength(3);
  write(build.source, { "handler.js": "" });
  const without = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
  expect((await client.resolveImage(without.image)).manifest.layers).toHaveLength(2);
  expect(requests()).toBe(asked);
});

describe("of a large source is looked at", () => {
  const named = { content: Buffer.from(prints), mode: 0o644 };
  const large = { content: Buffer.alloc(17 * 1024 * 1024, " "), mode: 0o644 };
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      path: `a/${at}.js`,
      content: Buffer.from(""),
      mode: 0o644,
    }));
  test.each<[string, SourceFile[], string[]]>([
    ["the top first", [...many(3000), { ...named, path: "handler.js" }], ["axios"]],
    ["so many files", [...many(2000), { ...named, path: "a/b/c.js" }], []],
    [
      "what is not too large",
      [
        { ...large, path: "a.js" },
        { ...named, path: "handler.js" },
      ],
      ["axios"],
    ],
    ["code alone", [{ ...named, path: "handler.json" }], []],
  ])("%s", (_, files, names) => expect(undeclaredIn(files)).toEqual(names));
});

test.each([
  { is: "does not have it", isUserError: true, cause: "E404" },
  { is: "is away", isUserError: false, cause: "ECONNREFUSED" },
])(
  "a registry that $is: the message names package, cause and way out",
  async ({ isUserError, cause }) => {
    const { npmConfig } = await startNpmRegistry({ packages: {} });
    const away = write(temporaryDirectory(), {
      ".npmrc": "registry=http://127.0.0.1:9/\nfetch-retries=0\n",
    });
    const { build } = await given(
      { "handler.js": prints },
      { npmConfig: isUserError ? npmConfig : join(away, ".npmrc") },
    );
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure instanceof UserError).toBe(isUserError);
    const message = messageOf(failure);
    expect(message).toMatch(
      /^adding axios, which the source uses and package\.json does not declare \(name a registry that has it in an \.npmrc, declare another version, or take it out of the source\): installing dependencies: npm install axios@\^1\.3\.3 ended with 1\n/,
    );
    expect(message).toContain(cause);
  },
);
