/** A build in three processes: what runs the code of packages can reach no credential, and cannot fool the one after it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { builderEntry, pullImage, stepScript } from "../index.ts";
import { builderEnvironment, type Files, given, write } from "../testing/build.ts";
import { type NpmPackage, startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const token = "npm_Zx81Qspectrum48k";

interface End {
  code: number;
  message: string;
}

/** A private package registry, and a way to run a step as its container does. */
async function steps(files: Files, packages: Record<string, NpmPackage>) {
  const { npmConfig } = await startNpmRegistry({ packages, token });
  const { build, client } = await given(files);
  const place = temporaryDirectory();
  const shared = {
    scratch: join(place, "workspace/build"),
    handover: join(place, "workspace/handover"),
  };
  for (const directory of Object.values(shared)) mkdirSync(directory, { recursive: true });
  const program = join(write(place, { "builder.sh": stepScript }), "builder.sh");
  symlinkSync(builderEntry, join(place, "builder.cjs"));
  write(build.source, { ".npmrc": `//other.example/:_authToken=${token}-of-source\n` });
  const config = join(place, "config");
  write(config, { ".npmrc": readFileSync(npmConfig, "utf8") });
  const take = async (step: string, env: Record<string, string> = {}): Promise<End> => {
    const flags = {
      source: build.source,
      runtime: build.runtime,
      base: build.base,
      destination: build.destination,
      "registry-config": step === "scripts" ? join(place, "nothing") : config,
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const end = join(place, `end-${step}`);
    writeFileSync(end, "");
    const child = spawn("sh", [program, ...args, "--step", step], {
      env: { ...builderEnvironment, SPRY_ROOT: place, SPRY_TERMINATION_LOG: end, ...env },
      stdio: "ignore",
    });
    const [code] = (await once(child, "close")) as [number];
    return { code, message: readFileSync(end, "utf8") };
  };
  return { ...shared, config, build, client, take };
}

const wants = (name: string): Files => ({
  "handler.js": "",
  "package.json": `{"dependencies":{"${name}":"1"}}`,
});
const scripted = (script: string): Record<string, NpmPackage> => ({
  "scripted@1.0.0": {
    manifest: { scripts: { install: script } },
    files: { "index.js": "module.exports = 'sauce'" },
  },
});
const done: End = { code: 0, message: "" };

test("a private package with scripts is fetched with credentials, and its scripts run where none are", async () => {
  const packages = scripted("echo $npm_package_name > ran");
  const own = `{"dependencies":{"scripted":"1"},"scripts":{"prepare":"echo own > node_modules/own"}}`;
  // Without addresses, as in the lock files of those who have several registries.
  const lock = JSON.stringify({
    lockfileVersion: 3,
    packages: {
      "": { dependencies: { scripted: "1" } },
      "node_modules/scripted": { version: "1.0.0", hasInstallScript: true },
    },
  });
  const files = { "handler.js": "", "package.json": own, "package-lock.json": lock };
  const { take, scratch, handover, client } = await steps(files, packages);
  expect(await take("fetch")).toEqual(done);
  for (const file of filesIn([scratch, handover])) {
    const text = readFileSync(file, "latin1");
    expect(text.includes(token), file).toBe(false);
  }
  expect(await take("scripts")).toEqual(done);
  const { code, message } = await take("push");
  expect(code).toBe(0);
  const { image } = JSON.parse(message) as { image: string };
  expect(image).toMatch(/^127\.0\.0\.1:\d+\/default-hello@sha256:/);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, image, dir);
  const modules = join(dir, "usr/src/app/function/node_modules");
  expect(readFileSync(join(modules, "scripted/ran"), "utf8")).toBe("scripted\n");
  expect(readFileSync(join(modules, "own"), "utf8")).toBe("own\n");
});

test("without foreign code the first step does it all, and the others pass its word on", async () => {
  const packages = { "plain@1.0.0": { files: { "index.js": "" } } };
  const files = { "handler.js": "", "package.json": '{"dependencies":{"plain":"1"}}' };
  const { take } = await steps(files, packages);
  const first = await take("fetch");
  expect(first.message).toContain("default-hello@sha256:");
  // They do not even start the builder.
  const withoutNode = { PATH: "/bin:/usr/bin", NODE_OPTIONS: "--no-such-option" };
  expect(await take("scripts", withoutNode)).toEqual(done);
  expect(await take("push", withoutNode)).toEqual(first);
});

/** The step that pushes may read credentials: nothing of them gets into an image by a link in their way. */
test.each([
  ["node_modules", 'cd ../.. && rm -rf node_modules && ln -s "$LOOT" node_modules'],
  ["a package", 'cd .. && rm -rf scripted && ln -s "$LOOT" scripted'],
  ["the list of packages", 'ln -sf "$LOOT/.npmrc" ../.package-lock.json'],
  [
    "the installation",
    'cd ../../.. && rm -rf install && mkdir install && ln -s "$LOOT" install/node_modules',
  ],
  [
    "the build's directory",
    'cd ../../../.. && mv "$(cat name)" gone && ln -s "$LOOT" "$(cat name)"',
  ],
])("a script that puts a link in the place of %s", async (_, script) => {
  const { take, config, scratch, client, build } = await steps(wants("scripted"), scripted(script));
  expect(await take("fetch")).toEqual(done);
  write(scratch, { name: readdirSync(scratch)[0] ?? "" });
  write(config, { "package.json": "{}" });
  expect(await take("scripts", { LOOT: config })).toEqual(done);
  const { code, message } = await take("push");
  expect(message).not.toContain(token);
  if (code !== 0) return;
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, build.destination, dir);
  for (const file of filesIn([dir])) expect(readFileSync(file, "latin1")).not.toContain(token);
});

test("a Job with one container runs no foreign code, and says so", async () => {
  const { take, build, client } = await steps(wants("scripted"), scripted("touch ran"));
  const { code, message } = await take("push");
  expect(code).toBe(2);
  expect(message).toMatch(/have scripts to run, and this Job has no container for them/);
  await expect(client.resolveImage(build.destination)).rejects.toThrow();
});

function filesIn(directories: readonly string[]): string[] {
  return directories
    .filter((directory) => existsSync(directory))
    .flatMap((directory) => readdirSync(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
