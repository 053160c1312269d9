import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { sourceDigest } from "@spry/function";
import { buildFunctionImage, builderEntry, pullImage } from "../index.ts";
import { builderEnvironment, type Files, given, write } from "../testing/build.ts";
import { startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { readSource } from "./function-source.ts";
import { messageOf, UserError } from "./user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });
afterEach(() => void vi.unstubAllEnvs());

const handler = "module.exports = { main: () => 1 };";
const withGreeting = {
  "handler.js": handler,
  "package.json": '{"dependencies":{"greeting":"^1.0.0"}}',
};

describe("a build", () => {
  test("puts the source on the runtime image", async () => {
    const { build, client, lines } = await given({ "handler.js": handler, "package.json": " \n" });
    const { image } = await buildFunctionImage(build);
    expect(image).toMatch(/\/default-hello@sha256:[0-9a-f]{64}$/);
    const dir = join(temporaryDirectory(), "image");
    const pulled = await pullImage(client, image, dir);
    expect(pulled.config.config?.Labels).toEqual({ "io.spry.interpreter": "node@24" });
    expect(pulled.manifest.layers.length).toBe(2);
    expect(readdirSync(join(dir, "usr/src/app/function"))).toEqual(["handler.js"]);
    expect(existsSync(join(dir, "usr/src/app/server.cjs"))).toBe(true);
    expect(lines).toEqual([expect.stringMatching(/^pushing source layer 0\.\d KiB$/)]);
  });

  test("says where its source is from, when that is known", async () => {
    const { build, client } = await given({ "handler.js": handler });
    const origin = { url: "https://git.example/shop.git", revision: "c".repeat(40) };
    const { image } = await buildFunctionImage({ ...build, origin });
    const expected = {
      "org.opencontainers.image.source": origin.url,
      "org.opencontainers.image.revision": origin.revision,
    };
    const { manifest, config } = await client.resolveImage(image);
    expect(manifest.annotations).toMatchObject(expected);
    expect(config.config?.Labels).toMatchObject(expected);
  });

  test("of the same source gives the same image, and sends nothing", async () => {
    const { build } = await given({ "handler.js": handler });
    const first = await buildFunctionImage(build);
    expect(await buildFunctionImage({ ...build, scratch: temporaryDirectory() })).toEqual({
      image: first.image,
      sentBytes: 0,
    });
  });

  test("reads a ConfigMap's volume through its links, and keeps .npmrc out", async () => {
    const { build, client } = await given({
      "..2026/handler.js": handler,
      "..2026/package.json": '{"type":"module"}',
      ".npmrc": "//x/:_authToken=secret",
      "node_modules/x/index.js": "",
    });
    symlinkSync("..2026", join(build.source, "..data"));
    for (const name of ["handler.js", "package.json"])
      symlinkSync(`..data/${name}`, join(build.source, name));
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    expect(readdirSync(join(dir, "usr/src/app/function")).sort()).toEqual([
      "handler.js",
      "package.json",
    ]);
  });

  test("installs dependencies once: an edit of the code sends a few bytes and installs nothing", async () => {
    const { npmConfig, requests } = await startNpmRegistry();
    const { build, client, lines } = await given(withGreeting, { npmConfig });
    await buildFunctionImage(build);
    expect(lines[0]).toBe("installing dependencies");
    const asked = requests();

    write(build.source, { "handler.js": `${handler} // edited` });
    const edited = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
    expect(edited.sentBytes).toBeLessThan(2000);
    expect(requests()).toBe(asked);

    const dir = join(temporaryDirectory(), "image");
    const pulled = await pullImage(client, edited.image, dir);
    expect(pulled.manifest.layers.length).toBe(3);
    const modules = join(dir, "usr/src/app/function/node_modules");
    expect(readFileSync(join(modules, "greeting/index.js"), "utf8")).toContain("hello");
    expect(readdirSync(modules).sort()).toEqual([".bin", "greeting"]);
    expect(readFileSync(join(modules, ".bin/greeting"), "utf8")).toContain("#!");
    expect(JSON.stringify(pulled)).not.toContain("secret-token");
  });

  test("runs the source's own install scripts with its files, and keeps what they make", async () => {
    // These tests run below an npm that is to run no scripts.
    vi.stubEnv("npm_config_ignore_scripts", undefined);
    const { npmConfig } = await startNpmRegistry();
    const packageJson = {
      dependencies: { greeting: "^1.0.0" },
      scripts: { postinstall: "sh tools/make.sh", prepare: "node tools/patch.js" },
    };
    const files = {
      "handler.js": handler,
      "package.json": JSON.stringify(packageJson),
      "model/schema.txt": "schema",
      "tools/make.sh": "mkdir -p generated && cp model/schema.txt generated/client.txt\n",
      "tools/patch.js":
        "require('fs').appendFileSync('node_modules/greeting/index.js', '// patched');\n",
    };
    const { build, client } = await given(files, { npmConfig });
    const made = async () => {
      const { image } = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
      const dir = join(temporaryDirectory(), "image");
      await pullImage(client, image, dir);
      const read = (file: string) => readFileSync(join(dir, "usr/src/app/function", file), "utf8");
      expect(existsSync(join(dir, "usr/src/app/function/package-lock.json"))).toBe(false);
      expect(read("node_modules/greeting/index.js")).toContain("// patched");
      return read("generated/client.txt");
    };
    expect(await made()).toBe("schema");
    write(build.source, { "model/schema.txt": "changed" });
    expect(await made()).toBe("changed");
  });

  test("refuses a source that is no longer what was asked for", async () => {
    const { build } = await given({ "handler.js": handler });
    const digest = sourceDigest(readSource(build.source));
    await buildFunctionImage({ ...build, sourceDigest: digest });
    write(build.source, { "handler.js": "edited" });
    const failure = await buildFunctionImage({ ...build, sourceDigest: digest }).catch(
      (error: unknown) => error,
    );
    expect(failure).not.toBeInstanceOf(UserError);
    expect(messageOf(failure)).toContain(`instead of ${digest}`);
  });

  const mistakes: {
    name: string;
    files: Files;
    links?: Record<string, string>;
    why: string | RegExp;
  }[] = [
    {
      name: "a missing comma",
      files: { "package.json": '{\n  "a": 1\n  "b": 2\n}' },
      why: /^package\.json: line 3 column 3: Expected ','/,
    },
    {
      name: "a stray word",
      files: { "package.json": '{"dependencies": {\n  "a": nonsense\n}}' },
      why: /^package\.json: line 2 column 9: Unexpected token 'o'/,
    },
    {
      name: "a cut end",
      files: { "package.json": '{"a": {' },
      why: /^package\.json: line 1 column 8: /,
    },
    { name: "a list", files: { "package.json": "[]" }, why: "package.json: expected an object" },
    {
      name: "a version that is no text",
      files: { "package.json": '{"dependencies":{"a":1}}' },
      why: "package.json: dependencies: expected names with a version each",
    },
    {
      name: "a link that leaves the source",
      files: { "a.js": "" },
      links: { "b.js": "/etc/hostname" },
      why: "source: b.js is a link that leaves the source",
    },
    {
      name: "a link to nothing",
      files: { "a.js": "" },
      links: { "b.js": "c.js" },
      why: "source: b.js is a link whose target does not exist",
    },
    { name: "no files", files: {}, why: "source: no files" },
  ];
  test.each(mistakes)("tells the author of $name", async ({ files, links = {}, why }) => {
    const { build } = await given(files);
    for (const [name, target] of Object.entries(links))
      symlinkSync(target, join(build.source, name));
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(why);
  });

  test("tells the author of a package that does not exist, in the installer's words", async () => {
    const { npmConfig } = await startNpmRegistry();
    const { build } = await given(
      { "handler.js": handler, "package.json": '{"dependencies":{"no-such-package":"1"}}' },
      { npmConfig },
    );
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(
      /^installing dependencies: npm install ended with 1\n.*E404.*no-such-package/s,
    );
    expect(messageOf(failure)).not.toMatch(/npm error|complete log/);
  });

  test("asks the registries that an .npmrc beside the source names", async () => {
    const { npmConfig } = await startNpmRegistry();
    const { build, client } = await given({
      ...withGreeting,
      ".npmrc": readFileSync(npmConfig, "utf8"),
    });
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    expect(readdirSync(join(dir, "usr/src/app/function")).sort()).toEqual([
      "handler.js",
      "node_modules",
      "package.json",
    ]);
  });

  test("installs what the lock file says, and tells the author when it does not fit", async () => {
    const { npmConfig } = await startNpmRegistry();
    const lock = JSON.stringify({
      name: "x",
      lockfileVersion: 3,
      packages: { "": { dependencies: { other: "1" } } },
    });
    const { build } = await given({ ...withGreeting, "package-lock.json": lock }, { npmConfig });
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(/npm ci ended with 1\n.*in sync/s);
  });

  test("does not let a dependency bring in files by a link", async () => {
    const { npmConfig } = await startNpmRegistry();
    const outside = write(temporaryDirectory(), {
      "package.json": '{"name":"outside","version":"1.0.0"}',
    });
    const { build } = await given(
      {
        "handler.js": handler,
        "package.json": JSON.stringify({ dependencies: { outside: `file:${outside}` } }),
      },
      { npmConfig },
    );
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(/outside is a link that leaves what is installed/);
  });
});

describe("the builder's program", () => {
  async function run(flags: Record<string, string>) {
    const dir = temporaryDirectory();
    const log = join(dir, "termination");
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const child = spawn(process.execPath, [builderEntry, ...args], {
      env: { ...builderEnvironment, HOME: dir, SPRY_TERMINATION_LOG: log, SPRY_ROOT: dir },
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, "close")) as [number];
    return { code, output, message: existsSync(log) ? readFileSync(log, "utf8") : undefined };
  }

  test("ends with 0 and the image's name", async () => {
    const { build } = await given({ "handler.js": handler });
    const { source, runtime, base, destination } = build;
    const { code, message, output } = await run({ source, runtime, base, destination });
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(JSON.parse(message ?? "")).toEqual({
      image: expect.stringMatching(/default-hello@sha256:/) as string,
    });
  });

  test("ends with 1 when the author must change something, 2 when another try may help", async () => {
    const { build } = await given({ "handler.js": handler, "package.json": "{" });
    const { source, runtime, base, destination } = build;
    const refused = await run({ source, runtime, base, destination });
    expect(refused.code).toBe(1);
    expect(refused.output).toMatch(/^package\.json: line 1 column 2/);
    expect(refused.message).toBe(refused.output.trim());
    const good = write(temporaryDirectory(), { "handler.js": handler });
    const broke = await run({
      source: good,
      runtime,
      base: "127.0.0.1:1/spry/nodejs24",
      destination,
    });
    expect(broke.code).toBe(2);
    expect(broke.output).toMatch(/ECONNREFUSED/);
    expect((await run({ source })).output).toMatch(/^usage: /);
  });
});
