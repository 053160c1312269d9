/** Base images from wherever they come, and what other people's programs make of the result. */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  assembleImage,
  buildFunctionImage,
  createLayer,
  parseImageName,
  pullImage,
  pushImage,
  type RegistryClient,
  writeImageLayout,
} from "../index.ts";
import { given } from "../testing/build.ts";
import { startRegistry, temporaryDirectory } from "../testing/registry.ts";
import { messageOf } from "./user-error.ts";

const handler = { "handler.js": "module.exports = { main: () => 1 };" };
const hasSkopeo = spawnSync("skopeo", ["--version"]).status === 0;
const run = promisify(execFile);

async function imageOf(content: string, architecture = "amd64") {
  const layer = await createLayer([{ path: "usr/src/app/server.cjs", content }]);
  return assembleImage({ layers: [layer], platform: { os: "linux", architecture } });
}

async function serverOf(client: RegistryClient, image: string): Promise<string> {
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, image, dir);
  expect(readdirSync(join(dir, "usr/src/app/function"))).toEqual(["handler.js"]);
  return readFileSync(join(dir, "usr/src/app/server.cjs"), "utf8");
}

describe("a base image", () => {
  test("comes from another registry, and is streamed into the target's", async () => {
    const other = await startRegistry();
    const { build, client } = await given(handler);
    const base = `${other.host}/base:1`;
    await pushImage(client, await imageOf("// other"), parseImageName(base));
    const { image } = await buildFunctionImage({ ...build, base });
    await other.registry.close();
    expect(await serverOf(client, image)).toBe("// other");
  });

  test("is not sent where its blobs are already, in whatever repository", async () => {
    const { build } = await given(handler);
    const first = await buildFunctionImage(build);
    const destination = build.destination.replace("default-hello", "default-second");
    const second = await buildFunctionImage({ ...build, destination, title: "second" });
    expect(second.sentBytes).toBeLessThan(first.sentBytes + 200);
    expect(second.image).toContain("/default-second@");
  });

  test("comes from an OCI layout, by name where there are several", async () => {
    const { build, client } = await given(handler);
    const dir = join(temporaryDirectory(), "layout");
    await writeImageLayout(await imageOf("// one"), dir, "one");
    const only = await buildFunctionImage({ ...build, base: `oci:${dir}` });
    expect(await serverOf(client, only.image)).toBe("// one");
    await writeImageLayout(await imageOf("// two"), dir, "two");
    const two = await buildFunctionImage({ ...build, base: `oci:${dir}:two` });
    expect(await serverOf(client, two.image)).toBe("// two");
    const fail = (base: string) => buildFunctionImage({ ...build, base }).catch(messageOf);
    expect(await fail(`oci:${dir}`)).toMatch(/which image\? There are one, two/);
    expect(await fail(`oci:${dir}:three`)).toMatch(/image three not found; available: one, two/);
    expect(await fail(`oci:${dir}/none`)).toMatch(/ENOENT.*index\.json/);
  });

  test("comes from an OCI archive, which cannot write elsewhere", async () => {
    const { build, client } = await given(handler);
    const dir = join(temporaryDirectory(), "layout");
    await writeImageLayout(await imageOf("// packed"), dir, "x");
    const archive = `${dir}.tar`;
    await run("tar", ["-C", dir, "-cf", archive, "."]);
    const scratch = temporaryDirectory();
    const { image } = await buildFunctionImage({
      ...build,
      base: `oci-archive:${archive}`,
      scratch,
    });
    expect(await serverOf(client, image)).toBe("// packed");

    symlinkSync("/etc", join(dir, "way-out"));
    await run("tar", ["-C", dir, "-cf", archive, "."]);
    writeFileSync(join(dir, "x"), "");
    await run("tar", ["-C", dir, "-rPf", archive, "--transform=s|x|../../escaped|", "x"]);
    const again = { ...build, base: `oci-archive:${archive}`, scratch: temporaryDirectory() };
    expect(await buildFunctionImage(again).catch(messageOf)).toMatch(/the path leaves the image/);
    expect(existsSync(join(again.scratch, "../escaped"))).toBe(false);
  });

  test("is refused when its bytes are not what its name says", async () => {
    const { build } = await given(handler);
    const dir = join(temporaryDirectory(), "layout");
    const image = await imageOf("// one");
    await writeImageLayout(image, dir, "one");
    const [layer] = image.layers;
    const blob = join(dir, "blobs/sha256", layer?.descriptor.digest.slice(7) ?? "");
    const bytes = readFileSync(blob);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    writeFileSync(blob, bytes);
    const failure = await buildFunctionImage({ ...build, base: `oci:${dir}` }).catch(messageOf);
    expect(failure).toMatch(/the content has digest/);
  });

  test("is not made of an interpreter that this machine has not", async () => {
    const { build } = await given({ "handler.py": "" });
    const built = buildFunctionImage({ ...build, base: "host:", runtime: "python399" });
    await expect(built).rejects.toThrow(/^base host: python3\.99 is not on this machine's PATH/);
  });

  test("is made of this machine's interpreter, and runs with nothing else around it", async () => {
    const { build, client } = await given(handler);
    const runtimeLayer = {
      files: [
        {
          path: "usr/src/app/server.cjs",
          content: "console.log(require('./function/handler.js').main())",
        },
      ],
      config: { Entrypoint: ["node", "/usr/src/app/server.cjs"] },
    };
    const { image } = await buildFunctionImage({ ...build, base: "host:", runtimeLayer });
    const dir = join(temporaryDirectory(), "image");
    const { config } = await pullImage(client, image, dir);
    expect(config.config).toMatchObject({ User: "1000:1000", ...runtimeLayer.config });
    expect(config.config?.Labels?.["io.spry.interpreter"]).toBeUndefined();
    const { status, stdout, stderr, error } = spawnSync(
      "chroot",
      [dir, "/usr/local/bin/node", "/usr/src/app/server.cjs"],
      { encoding: "utf8", env: {} },
    );
    // Changing the root is root's alone.
    if (process.getuid?.() !== 0 || error) return;
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "1\n", stderr: "" });
  }, 60_000);
});

describe.skipIf(!hasSkopeo)("skopeo", () => {
  test("reads an image that was built, and an OCI layout of it", async () => {
    const { build } = await given(handler, {
      title: "hello",
      baseName: "registry.example/spry/nodejs24:1",
      origin: { url: "https://git.example/a.git", created: "2024-02-03T04:05:06Z" },
    });
    const { image } = await buildFunctionImage(build);
    const inspected = await run("skopeo", ["inspect", "--tls-verify=false", `docker://${image}`]);
    expect(JSON.parse(inspected.stdout)).toMatchObject({
      Digest: image.slice(image.indexOf("@") + 1),
      Created: "2024-02-03T04:05:06Z",
      Labels: { "org.opencontainers.image.title": "hello" },
    });
    const dir = join(temporaryDirectory(), "layout");
    await run("skopeo", ["copy", "--src-tls-verify=false", `docker://${image}`, `oci:${dir}:mine`]);
    const base = `oci:${dir}:mine`;
    const files = { "b.js": "" };
    const next = await given(files);
    await buildFunctionImage({ ...next.build, base });
  });
});
