import { mkdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  assembleImage,
  createLayer,
  formatImageName,
  parseImageName,
  pullImage,
  pushImage,
  RegistryClient,
} from "./index.ts";
import { startRegistry, temporaryDirectory } from "./testing/registry.ts";

const source = [
  { path: "usr/src/app/function/handler.js", content: "module.exports = { main() {} };" },
  { path: "usr/src/app/function/bin/tool", content: "#!/bin/sh\n", mode: 0o755 },
  { path: "usr/src/app/function/link", link: "bin/tool" },
];

async function pushRuntime(client: RegistryClient, host: string) {
  const layers = [await createLayer([{ path: "usr/src/app/server.cjs", content: "// server" }])];
  const config = {
    Entrypoint: ["node", "/usr/src/app/server.cjs"],
    WorkingDir: "/usr/src/app/function",
    Env: ["A=1", "B=2"],
    Labels: { "io.spry.interpreter": "node@24" },
  };
  const name = parseImageName(`${host}/spry/nodejs24:latest`);
  await pushImage(client, assembleImage({ layers, config }), name);
  return client.resolveImage(name);
}

describe("an image", () => {
  test("comes out of a registry as it went in", async () => {
    const { host } = await startRegistry();
    const client = new RegistryClient();
    const base = await pushRuntime(client, host);
    const image = assembleImage({
      base,
      layers: [await createLayer(source)],
      config: { Env: ["B=3"] },
    });
    const target = parseImageName(`${host}/default-hello:1`);
    const digests = new Set(base.manifest.layers.map((layer) => layer.digest));
    const pushed = await pushImage(client, image, target, {
      sources: [{ name: base.name, digests }],
    });

    const dir = join(temporaryDirectory(), "image");
    const pulled = await pullImage(client, `${host}/default-hello@${pushed.digest}`, dir);
    expect(pulled.digest).toBe(image.digest);
    expect(pulled.config.config).toEqual({
      Entrypoint: ["node", "/usr/src/app/server.cjs"],
      Env: ["A=1", "B=3"],
      Labels: { "io.spry.interpreter": "node@24" },
      WorkingDir: "/usr/src/app/function",
    });
    const app = join(dir, "usr/src/app");
    expect(readFileSync(join(app, "server.cjs"), "utf8")).toBe("// server");
    expect(readFileSync(join(app, "function/handler.js"), "utf8")).toContain("main()");
    expect(statSync(join(app, "function/bin/tool")).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(app, "function/link"))).toBe("bin/tool");
  });

  test("is sent once: a second push sends nothing, and a base in the same registry is mounted", async () => {
    const { host } = await startRegistry();
    const client = new RegistryClient();
    const base = await pushRuntime(client, host);
    const image = assembleImage({ base, layers: [await createLayer(source)] });
    const digests = new Set(base.manifest.layers.map((layer) => layer.digest));
    const push = (repository: string) =>
      pushImage(client, image, parseImageName(`${host}/${repository}`), {
        sources: [{ name: base.name, digests }],
      });
    expect((await push("first")).sentLayers).toBe(1);
    expect(await push("first")).toMatchObject({ sentLayers: 0, sentBytes: 0 });
    expect((await push("second")).sentLayers).toBe(1);
  });

  test("goes from one registry to another when its base lives elsewhere", async () => {
    const from = await startRegistry({ credentials: { username: "u", password: "p" } });
    const to = await startRegistry();
    const client = new RegistryClient({
      resolve: (host) =>
        host === "base.example" ? { url: from.url, username: "u", password: "p" } : undefined,
    });
    const base = await pushRuntime(client, "base.example");
    const image = assembleImage({ base, layers: [] });
    const digests = new Set(base.manifest.layers.map((layer) => layer.digest));
    const target = parseImageName(`${to.host}/copy:1`);
    const result = await pushImage(client, image, target, {
      sources: [{ name: base.name, digests }],
    });
    expect(result.sentLayers).toBe(1);
    const dir = join(temporaryDirectory(), "image");
    await pullImage(new RegistryClient(), formatImageName(target), dir);
    expect(readFileSync(join(dir, "usr/src/app/server.cjs"), "utf8")).toBe("// server");
  });

  test("has the same digest wherever and whenever its files were written", async () => {
    const digestFrom = async (times: number, isLarge: boolean) => {
      const dir = temporaryDirectory();
      mkdirSync(join(dir, "a"));
      writeFileSync(join(dir, "a/b.js"), "1".repeat(100_000), {
        mode: times === 1 ? 0o600 : 0o644,
      });
      const files = [
        { path: `${"deep/".repeat(60)}ü.js`, file: join(dir, "a/b.js") },
        { path: "a/b.js", file: join(dir, "a/b.js") },
      ];
      if (times === 1) files.reverse();
      const scratchFile = join(dir, "layer");
      const layer = await createLayer(files, isLarge ? { scratchFile } : {});
      return { diffId: layer.diffId, digest: assembleImage({ layers: [layer] }).digest };
    };
    const [small, large] = [await digestFrom(1, false), await digestFrom(1, true)];
    expect(await digestFrom(2, false)).toEqual(small);
    expect(await digestFrom(2, true)).toEqual(large);
    // Compressed in another way, but the same content.
    expect(large.diffId).toBe(small.diffId);
  });
});
