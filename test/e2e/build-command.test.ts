/** `spry build`: the platform's builder at a desk, with no platform running. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { createRegistry, pullImage, readImageLayout, RegistryClient } from "@spry/image";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "spry-build-command-"));
  mkdirSync(path.join(dir, "src"));
  writeFileSync(path.join(dir, "src/handler.js"), "exports.main = () => 'built here';");
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function spry(...args: string[]) {
  const env = { PATH: process.env["PATH"], HOME: dir };
  const answer = await run(
    process.execPath,
    [path.join(root, "packages/cli/bin/spry.mjs"), ...args],
    {
      env,
    },
  ).catch((error: unknown) => error as { stdout: string; stderr: string; code: number });
  return { code: 0, ...answer };
}

describe("spry build", () => {
  test("writes an OCI layout that brings all it needs, without a registry", async () => {
    const output = path.join(dir, "layout");
    const flags = ["--tag", "registry.example/shop/hello:1", "--output", output];
    const { code, stdout, stderr } = await spry("build", path.join(dir, "src"), ...flags);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    const { digest, config } = readImageLayout(output, {
      reference: "registry.example/shop/hello:1",
    });
    expect(stdout.trim()).toBe(`oci:${output}@${digest}`);
    expect(config.config).toMatchObject({
      Entrypoint: ["node", "/usr/src/app/server.cjs"],
      Labels: { "org.opencontainers.image.title": "hello" },
    });
    const again = await spry("build", path.join(dir, "src"), ...flags);
    expect(again.stdout).toBe(stdout);
    if (spawnSync("skopeo", ["--version"]).status === 0) {
      const source = `oci:${output}:registry.example/shop/hello:1`;
      const inspected = await run("skopeo", ["inspect", source]);
      expect(JSON.parse(inspected.stdout)).toMatchObject({ Digest: digest });
    }
  });

  test("pushes to the registry of its name", async () => {
    const registry = createRegistry({ dir: path.join(dir, "registry") });
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    try {
      const tag = `127.0.0.1:${server.port}/shop/hello:1`;
      const { code, stdout, stderr } = await spry("build", path.join(dir, "src"), "-t", tag);
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
      const target = path.join(dir, "pulled");
      const { digest } = await pullImage(new RegistryClient(), tag, target);
      expect(stdout.trim().endsWith(`@${digest}`)).toBe(true);
      const program = [
        "/usr/local/bin/node",
        "-p",
        "require('/usr/src/app/function/handler.js').main()",
      ];
      if (process.getuid?.() === 0)
        expect(spawnSync("chroot", [target, ...program], { encoding: "utf8" }).stdout).toBe(
          "built here\n",
        );
    } finally {
      await server.close();
      await registry.close();
    }
  });

  test("brings the packages of a monorepo along", async () => {
    const files = {
      "shop/package.json": '{"workspaces":["apps/*","packages/*"]}',
      "shop/apps/fn/package.json": '{"dependencies":{"@shop/price":"*","near":"file:../../near"}}',
      "shop/apps/fn/handler.js": "exports.main = () => require('@shop/price') + require('near');",
      "shop/packages/price/package.json": '{"name":"@shop/price","version":"1.0.0"}',
      "shop/packages/price/index.js": "module.exports = 'priced ';",
      "shop/near/package.json": '{"name":"near","version":"1.0.0"}',
      "shop/near/index.js": "module.exports = 'nearby';",
    };
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.join(dir, path.dirname(name)), { recursive: true });
      writeFileSync(path.join(dir, name), content);
    }
    const registry = createRegistry({ dir: path.join(dir, "monorepo-registry") });
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    const target = path.join(dir, "monorepo-pulled");
    try {
      const tag = `127.0.0.1:${server.port}/shop/fn:1`;
      const { code, stderr } = await spry("build", path.join(dir, "shop/apps/fn"), "-t", tag);
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
      await pullImage(new RegistryClient(), tag, target);
    } finally {
      await server.close();
      await registry.close();
    }
    const program = "console.log(require('./handler.js').main())";
    const cwd = path.join(target, "usr/src/app/function");
    expect(spawnSync(process.execPath, ["-e", program], { cwd, encoding: "utf8" }).stdout).toBe(
      "priced nearby\n",
    );
  });

  test.each([
    { args: ["nowhere", "-t", "a/b:1"], why: /nowhere is not a directory/ },
    {
      args: ["src", "-t", "a/b:1", "--runtime", "cobol"],
      why: /unknown runtime cobol.*use one of nodejs/s,
    },
    {
      args: ["src", "-t", "a/B:1"],
      why: /error: reading image name "a\/B:1": a repository name consists of lower case letters.*\n$/,
    },
    {
      args: ["src", "-t", "127.0.0.1:1/a:1"],
      why: /error: .*127\.0\.0\.1:1.*ECONNREFUSED.*\n.*check the registry's name.*\n$/,
    },
    {
      args: ["src", "-t", "a/b:1", "--base", "oci:nowhere", "-o", "out"],
      why: /error: reading the OCI layout nowhere: .*no such file.*\n$/,
    },
  ])("tells what is wrong: $why", async ({ args: [source = "", ...args], why }) => {
    const { code, stderr } = await spry("build", path.join(dir, source), ...args);
    expect(code).toBe(1);
    expect(stderr).toMatch(why);
  });
});
