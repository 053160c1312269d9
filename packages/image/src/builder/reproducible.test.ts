/** The same input gives the same digest wherever it is built: other place, user, zone, language, time. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { type BuildOptions, builderEntry } from "../index.ts";
import { builderEnvironment, type Files, given, write } from "../testing/build.ts";
import { startNpmRegistry } from "../testing/npm-registry.ts";
import { pythonOnThisMachine, startPythonIndex } from "../testing/python-index.ts";
import { temporaryDirectory } from "../testing/registry.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const isRoot = process.getuid?.() === 0;

interface Place {
  umask: string;
  env: Record<string, string>;
  uid?: number;
  /** Of the source's files. */
  time: Date;
  reversed: boolean;
}

const here: Place = { umask: "022", env: {}, time: new Date(0), reversed: false };
const there: Place = {
  umask: "077",
  env: { TZ: "Asia/Kathmandu", LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8", SOURCE_DATE_EPOCH: "7" },
  time: new Date("2031-05-06T07:08:09Z"),
  reversed: true,
  ...(isRoot ? { uid: 4711 } : {}),
};

/** Runs the builder's program on a fresh copy of the files; returns the image's digest. */
async function build(files: Files, place: Place, options: BuildOptions, settings: Files) {
  const root = temporaryDirectory();
  chmodSync(root, 0o777);
  const names = Object.keys(files);
  if (place.reversed) names.reverse();
  const source = join(root, place.reversed ? "quite/another/place" : "src");
  write(source, Object.fromEntries(names.map((name) => [name, files[name] ?? ""])));
  for (const name of names) utimesSync(join(source, name), place.time, place.time);
  const config = write(join(root, "config"), settings);
  const own = join(root, "own");
  mkdirSync(own);
  if (place.uid) chownSync(own, place.uid, place.uid);
  const { host } = new URL(`http://${options.base}`);
  const flags = {
    source,
    runtime: options.runtime,
    base: options.base,
    "base-name": "registry.example/spry/runtime:1",
    title: "hello",
    destination: options.destination,
    // No layer of the other place is found.
    "dependency-cache": `${host}/cache/${place.umask}`,
    "registry-config": config,
    scratch: own,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const command = `umask ${place.umask}; exec "$0" "$@"`;
  const child = spawn("/bin/sh", ["-c", command, process.execPath, builderEntry, ...args], {
    cwd: place.reversed ? "/" : root,
    ...(place.uid ? { uid: place.uid, gid: place.uid } : {}),
    env: {
      ...builderEnvironment,
      HOME: own,
      SPRY_TERMINATION_LOG: join(own, "end"),
      ...place.env,
    },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  expect({ code, output }).toMatchObject({ code: 0 });
  const { image } = JSON.parse(readFileSync(join(own, "end"), "utf8")) as { image: string };
  return image.slice(image.indexOf("@") + 1);
}

const handler = "module.exports = { main: () => 1 };";
const typed = "export const main = (): number => 1;";
const version = pythonOnThisMachine();

test.each([
  { name: "JavaScript", files: { "handler.js": handler, "package.json": "{}", "lib/a.js": "1" } },
  { name: "TypeScript", files: { "handler.ts": typed, "package.json": '{"type":"module"}' } },
])("the same digest of $name in another place", async ({ files }) => {
  const { build: options } = await given(files);
  const first = await build(files, here, options, {});
  expect(await build(files, there, options, {})).toBe(first);
  expect(await build({ ...files, "b.js": "" }, here, options, {})).not.toBe(first);
});

test("the same digest with packages of npm, with and without a lock", async () => {
  const { npmConfig, address } = await startNpmRegistry({
    packages: {
      "greeting@1.2.3": {
        manifest: { bin: "cli.js", dependencies: { "@scope/deep": "^2.0.0" } },
        files: { "index.js": "1", "cli.js": "#!/usr/bin/env node\n" },
      },
      "@scope/deep@2.1.0": {
        manifest: { scripts: { postinstall: "node make.js" } },
        files: { "make.js": "require('fs').writeFileSync('made.txt', 'always the same')" },
      },
    },
  });
  const settings = { ".npmrc": readFileSync(npmConfig, "utf8") };
  const packageJson = '{"dependencies":{"greeting":"^1.0.0"}}';
  const files: Files = { "handler.js": handler, "package.json": packageJson };
  const { build: options } = await given(files);
  const first = await build(files, here, options, settings);
  expect(await build(files, there, options, settings)).toBe(first);

  const lock = temporaryDirectory();
  write(lock, { ...files, ...settings });
  await promisify(execFile)(
    "npm",
    ["install", "--package-lock-only", `--userconfig=${lock}/.npmrc`],
    {
      cwd: lock,
      env: { PATH: process.env["PATH"], HOME: lock },
    },
  );
  const locked = readFileSync(join(lock, "package-lock.json"), "utf8");
  expect(locked).toContain(address);
  const withLock = { ...files, "package-lock.json": locked };
  const second = await build(withLock, here, options, settings);
  expect(await build(withLock, there, options, settings)).toBe(second);
});

test.skipIf(!version)("the same digest with packages of pip", async () => {
  const { pipConfig } = await startPythonIndex();
  const settings = { "pip.conf": readFileSync(pipConfig, "utf8") };
  const files: Files = {
    "handler.py": "import greeting\ndef main(event, context): return greeting.greet()\n",
    "requirements.txt": "greeting\n",
  };
  const { build: options } = await given(files);
  const runtime = `python${version?.replace(".", "")}`;
  const first = await build(files, here, { ...options, runtime }, settings);
  expect(await build(files, there, { ...options, runtime }, settings)).toBe(first);
});
