/** Credentials of package registries: in no byte of an image, in no word of a log, whatever packages do. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { type Files, given, write } from "../testing/build.ts";
import { decompressed } from "../testing/decompressed.ts";
import { type NpmPackage, startNpmRegistry } from "../testing/npm-registry.ts";
import { pythonOnThisMachine, startPythonIndex } from "../testing/python-index.ts";
import { curiousSource, sourceDistribution } from "../testing/python-sources.ts";
import { startRegistry, temporaryDirectory } from "../testing/registry.ts";
import { runInstaller } from "./installer.ts";
import { secretsIn } from "./secrets.ts";
import { messageOf, UserError } from "./user-error.ts";

const token = "npm_Zx81Qspectrum48k";

afterEach(() => void vi.unstubAllEnvs());

/** Every byte that a registry has, as it is and decompressed, with the names of the files. */
function everythingIn(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const bytes = readFileSync(join(entry.parentPath, entry.name));
      return `${entry.name}\n${decompressed(bytes).toString("latin1")}\n${bytes.toString("latin1")}`;
    })
    .join("\n");
}

async function givenPrivate(files: Files, packages: Record<string, NpmPackage>) {
  const { npmConfig, address } = await startNpmRegistry({ packages, token });
  const { dir, host } = await startRegistry();
  const made = await given(files, { npmConfig });
  const { base, client } = made.build;
  // All that is built is in a registry of its own, whose bytes can be searched.
  const build = {
    ...made.build,
    destination: `${host}/default-hello:1`,
    dependencyCache: `${host}/spry-cache/nodejs24`,
  };
  return { ...made, build, base, client, dir, address };
}

const wants = (name: string): Files => ({
  "handler.js": "",
  "package.json": `{"dependencies":{"${name}":"1"}}`,
});

describe("credentials", () => {
  test("for npm get private packages, and are nowhere afterwards", async () => {
    const { build, dir, lines } = await givenPrivate(wants("secret-sauce"), {
      "secret-sauce@1.0.0": { files: { "index.js": "module.exports = 'sauce'" } },
    });
    writeFileSync(join(build.source, ".npmrc"), `//other.example/:_authToken=${token}-of-source\n`);
    await buildFunctionImage(build);
    const everything = everythingIn(dir);
    expect(everything).toContain("module.exports = 'sauce'");
    expect(everything).toContain("application/vnd.cyclonedx+json");
    expect(everything).not.toContain(token);
    expect(lines.join("\n")).not.toContain(token);
  });

  test("that are wrong are told of without being told", async () => {
    const { build } = await givenPrivate(wants("secret-sauce"), {});
    const wrong = `${token}-wrong`;
    const text = readFileSync(build.npmConfig ?? "", "utf8").replace(token, wrong);
    writeFileSync(build.npmConfig ?? "", text);
    const failure = messageOf(await buildFunctionImage(build).catch((error: unknown) => error));
    expect(failure).toMatch(/^installing dependencies: npm install ended with 1\n.*401/s);
    expect(failure).not.toContain(token);
  });

  test("are in nothing that npm hands to an install script", async () => {
    const dump = [
      "const fs = require('fs');",
      "const own = [process.env.npm_config_userconfig, process.env.INIT_CWD + '/.npmrc'];",
      "const read = (file) => { try { return fs.readFileSync(file, 'utf8'); } catch { return ''; } };",
      "fs.writeFileSync('seen', JSON.stringify([process.env, own.map(read), process.argv]));",
    ].join("\n");
    const { build, client, address } = await givenPrivate(wants("nosy"), {
      "nosy@1.0.0": {
        manifest: { scripts: { install: "node dump.js" } },
        files: { "dump.js": dump },
      },
    });
    const line = `//other.example/:_authToken=${token}-of-source\nfund=false\n`;
    writeFileSync(join(build.source, ".npmrc"), line);
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    const seen = readFileSync(join(dir, "usr/src/app/function/node_modules/nosy/seen"), "utf8");
    expect(seen).toContain(address);
    expect(seen).toContain("fund=false");
    expect(seen).not.toContain(token);
  });

  /** A script finds the file wherever it is: it has the builder's user. */
  const thief = (script: string): Record<string, NpmPackage> => ({
    "thief@1.0.0": { manifest: { scripts: { install: script } }, files: {} },
  });

  test("that an install script finds and prints are not shown", async () => {
    const { build, lines } = await givenPrivate(
      wants("thief"),
      thief('cat "$TEST_LOOT" >&2; exit 1'),
    );
    vi.stubEnv("TEST_LOOT", build.npmConfig);
    const failure = messageOf(await buildFunctionImage(build).catch((error: unknown) => error));
    expect(failure).toContain("_authToken=***");
    expect(failure + lines.join()).not.toContain(token);
  });

  test("that an install script finds and copies into the image stop the build", async () => {
    const { build, dir } = await givenPrivate(wants("thief"), thief('cp "$TEST_LOOT" loot.txt'));
    vi.stubEnv("TEST_LOOT", build.npmConfig);
    const failure: unknown = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(/node_modules\/thief\/loot\.txt contains a credential/);
    expect(existsSync(dir) ? everythingIn(dir) : "").not.toContain(token);
  });

  const version = pythonOnThisMachine();
  test.skipIf(!version)("for pip get private packages, and are nowhere afterwards", async () => {
    const { pipConfig } = await startPythonIndex();
    const { dir, host } = await startRegistry();
    const { build, lines } = await given(
      { "handler.py": "import greeting", "requirements.txt": "greeting\n" },
      { pipConfig, runtime: `python${version?.replace(".", "")}` },
    );
    await buildFunctionImage({
      ...build,
      destination: `${host}/default-hello:1`,
      dependencyCache: `${host}/spry-cache/python`,
    });
    const everything = everythingIn(dir);
    expect(everything).toContain("pkg:pypi/greeting@1.2.3");
    expect(everything + lines.join("\n")).not.toContain("secret-token");
  });

  // Installers run here, at the same time as the rest of the tests.
  vi.setConfig({ testTimeout: 120_000 });

  test.skipIf(!version)(
    "for pip are out of reach of packages that are built from source",
    async () => {
      const { pipConfig } = await startPythonIndex({ login: "user:secret-token" });
      const place = temporaryDirectory();
      const archive = sourceDistribution("homemade", curiousSource("homemade"));
      writeFileSync(join(place, "homemade-1.0.tar.gz"), archive);
      const settings = readFileSync(pipConfig, "utf8");
      writeFileSync(pipConfig, settings.replace("find-links =", `find-links = ${place}`));
      const runtime = `python${version?.replace(".", "")}`;
      const requirements = "greeting\nhomemade==1.0\n";
      const { build, client } = await given(
        { "handler.py": "", "requirements.txt": requirements },
        { pipConfig, runtime },
      );
      const dir = join(temporaryDirectory(), "image");
      await pullImage(client, (await buildFunctionImage(build)).image, dir);
      const packages = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
      expect(existsSync(join(packages, "greeting/__init__.py"))).toBe(true);
      const seen = readFileSync(join(packages, "homemade.py"), "utf8");
      expect(seen).toContain("index-url");
      expect(seen).not.toContain("secret-token");

      write(build.source, { "requirements.txt": "greeting==9\n" });
      const again = { ...build, scratch: temporaryDirectory() };
      const failure = await buildFunctionImage(again).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(UserError);
      expect(messageOf(failure)).toMatch(/^installing dependencies: .*from versions: 1\.2\.3/s);
    },
  );

  test("are found in every form", () => {
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const npmrc = `//a/:_authToken = "${token}"\n_auth=${base64("me:pass-word")}\n//b/:_password=${base64("other-word")}
//c/:_authToken=\${NPM_TOKEN}\n; //d/:_authToken=comment-only\nregistry=https://u:p%40ssw0rd@e/\n`;
    const found = secretsIn([npmrc]);
    for (const secret of [token, "pass-word", "other-word", "p@ssw0rd", "p%40ssw0rd"])
      expect(found).toContain(secret);
    expect(found.join()).not.toMatch(/NPM_TOKEN|comment/);
  });
});

test("an installation that fills the disk is ended, with a word to the author", async () => {
  const directory = temporaryDirectory();
  const script =
    "const fs = require('fs'); for (let i = 0;; i++) { fs.writeFileSync('f' + i, Buffer.alloc(65536)); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); }";
  const run = { directory, home: write(temporaryDirectory(), {}) };
  const failure: unknown = await runInstaller(
    process.execPath,
    ["-e", script],
    run,
    1024 * 1024,
  ).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UserError);
  expect(messageOf(failure)).toMatch(/^dependencies: more than 0\.0 GiB during the installation$/);
});
