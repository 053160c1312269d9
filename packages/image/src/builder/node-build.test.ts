/** The `build` script of a package.json, the switch for install scripts, and what npm says. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { type Files, given, write } from "../testing/build.ts";
import { type NpmPackage, startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { meaningfulLines } from "./npm.ts";
import { messageOf, UserError } from "./user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

afterEach(() => void vi.unstubAllEnvs());

const packages: Record<string, NpmPackage> = {
  "greeting@1.0.0": { files: { "index.js": "module.exports = 'hello'" } },
  "compiler@1.0.0": {
    manifest: { bin: { compile: "compile.js" } },
    files: {
      "compile.js": `#!/usr/bin/env node
const fs = require("fs");
fs.mkdirSync("dist");
fs.writeFileSync("dist/out.js", fs.readFileSync("in.txt", "utf8") + require("greeting"));`,
    },
  },
  "scripted@1.0.0": {
    manifest: { scripts: { install: "node -e \"require('fs').writeFileSync('ran','')\"" } },
    files: { "index.js": "" },
  },
};
const project = {
  scripts: { build: "compile" },
  dependencies: { greeting: "^1.0.0" },
  devDependencies: { compiler: "^1.0.0" },
};
const source: Files = {
  "handler.js": "module.exports = require('./dist/out.js');",
  "in.txt": "// made of it: ",
  "package.json": JSON.stringify(project),
};

test("runs with the devDependencies, which are not in the image; an edit installs nothing", async () => {
  const { npmConfig, requests } = await startNpmRegistry({ packages });
  const { build, client, lines } = await given(source, { npmConfig });
  await buildFunctionImage(build);
  const asked = requests();
  expect(asked).toBeGreaterThan(0);

  write(build.source, { "in.txt": "// edited: " });
  const edited = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
  expect(requests()).toBe(asked);
  expect(lines.filter((line) => line === "running the build script")).toHaveLength(2);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, edited.image, dir);
  const home = join(dir, "usr/src/app/function");
  expect(readFileSync(join(home, "dist/out.js"), "utf8")).toBe("// edited: hello");
  expect(readdirSync(join(home, "node_modules"))).toEqual(["greeting"]);
});

test("needs no dependencies, and fails in the author's words", async () => {
  const files = {
    "handler.js": "",
    "package.json": '{"scripts":{"build":"echo made > made.txt"}}',
  };
  const { build, client } = await given(files);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  expect(readFileSync(join(dir, "usr/src/app/function/made.txt"), "utf8")).toBe("made\n");

  write(build.source, {
    "package.json": '{"scripts":{"build":"echo in.ts: no such type; exit 3"}}',
  });
  const again = { ...build, scratch: temporaryDirectory() };
  const failure = await buildFunctionImage(again).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UserError);
  expect(messageOf(failure)).toMatch(
    /^running the build script: npm run build ended with 3\n.*no such type/s,
  );
});

test.each([
  { setting: "", ran: true },
  { setting: "ignore-scripts=true\n", ran: false },
])("install scripts run: $ran, with the setting '$setting'", async ({ setting, ran }) => {
  const { npmConfig } = await startNpmRegistry({ packages });
  const { build, client } = await given({
    "handler.js": "",
    ".npmrc": `${setting}${readFileSync(npmConfig, "utf8")}`,
    "package.json": '{"dependencies":{"scripted":"1"}}',
  });
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  const found = existsSync(join(dir, "usr/src/app/function/node_modules/scripted/ran"));
  expect(found).toBe(ran);
});

test.each([
  ["optionalDependencies", "is left out"],
  ["dependencies", "fails the build"],
] as const)("of the %s, a package whose install script fails %s", async (field, end) => {
  const scripted = (install: string): NpmPackage => ({
    manifest: { scripts: { install }, hasInstallScript: true },
    files: { "index.js": "" },
  });
  const packages = {
    "broken@1.0.0": scripted("echo no compiler >&2; exit 3"),
    "sound@1.0.0": scripted("touch made"),
  };
  const { npmConfig } = await startNpmRegistry({ packages });
  const manifest = { dependencies: { sound: "1" }, optionalDependencies: {} };
  const wanted = { ...manifest, [field]: { ...manifest[field], broken: "1" } };
  const files = { "handler.js": "", "package.json": JSON.stringify(wanted) };
  const { build, client } = await given(files, { npmConfig });
  const built = buildFunctionImage(build);
  if (end === "fails the build")
    return expect(built).rejects.toThrow(/npm rebuild ended with 3[^]*no compiler/);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await built).image, dir);
  const modules = join(dir, "usr/src/app/function/node_modules");
  expect(readdirSync(modules)).toEqual(["sound"]);
  expect(readdirSync(join(modules, "sound"))).toContain("made");
});

test("a failure is told without npm's advice for other situations", () => {
  const said = `npm warn deprecated thing@1: use another
npm error code E404
npm error 404 Not Found - GET http://127.0.0.1/nothing - not found
npm error 404
npm error 404  'nothing@1' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error FetchError: request to http://127.0.0.1/a.tgz failed, reason: connect ECONNREFUSED
npm error     at onSocketNT (node:_http_client:1188:5)
npm error     at async fetch (node:x:1:1) {
npm error   errno: 'ECONNREFUSED',
npm error   requiredBy: '.'
npm error }
npm error notarget No matching version found for nothing@9.
npm notice New major version of npm available!
npm error A complete log of this run can be found in: /x/.npm/_logs/1-debug-0.log`;
  expect(meaningfulLines(said).split("\n")).toEqual([
    "code E404",
    "Not Found - GET http://127.0.0.1/nothing - not found",
    "'nothing@1' is not in this registry.",
    "FetchError: request to http://127.0.0.1/a.tgz failed, reason: connect ECONNREFUSED",
    "No matching version found for nothing@9.",
  ]);
});

const canCompile = ["g++", "make", "python3"].every(
  (program) => spawnSync(program, ["--version"]).status === 0,
);
test.skipIf(!canCompile)(
  canCompile
    ? "an add-on in C is compiled, with the interpreter's own headers"
    : "skipped: no compiler for add-ons here",
  async () => {
    const addon = `#include <node_api.h>
NAPI_MODULE_INIT() {
  napi_value text;
  napi_create_string_utf8(env, "from C", NAPI_AUTO_LENGTH, &text);
  return text;
}`;
    const native: NpmPackage = {
      files: {
        "binding.gyp": `{"targets":[{"target_name":"addon","sources":["addon.c"]}]}`,
        "addon.c": addon,
        "index.js": `module.exports = require("./build/Release/addon.node");`,
      },
    };
    const { npmConfig } = await startNpmRegistry({ packages: { "native@1.0.0": native } });
    const files = {
      "handler.js": `console.log(require("native"));`,
      "package.json": `{"dependencies":{"native":"1"}}`,
    };
    const { build, client } = await given(files, { npmConfig });
    // Whatever it is that it is asked for: not a server for headers.
    vi.stubEnv("npm_config_disturl", "http://127.0.0.1:9/");
    const dir = join(temporaryDirectory(), "image");
    const { image } = await buildFunctionImage(build);
    await pullImage(client, image, dir);
    const handler = join(dir, "usr/src/app/function/handler.js");
    expect(execFileSync(process.execPath, [handler], { encoding: "utf8" })).toBe("from C\n");
    expect(readdirSync(join(dir, "usr/src/app/function/node_modules/native/build"))).toEqual([
      "Release",
    ]);
    const elsewhere = await given(files, { npmConfig });
    const again = await buildFunctionImage(elsewhere.build);
    expect(again.image.split("@")[1]).toBe(image.split("@")[1]);
  },
  120_000,
);
