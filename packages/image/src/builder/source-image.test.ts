import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceDigest } from "@spry/function";
import { createRegistry, RegistryClient } from "../index.ts";
import { type LayerFile } from "../layer.ts";
import { readSource } from "./function-source.ts";
import { readSourceImage } from "./read-source-image.ts";
import { createSourceImage, fetchSourceImage } from "./source-image.ts";

const file = (path: string): LayerFile => ({ path, content: "x" });

test("a source goes to a registry once, and comes back as it was", async () => {
  const dir = mkdtempSync(join(tmpdir(), "source-image-"));
  const registry = createRegistry({ dir: join(dir, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  try {
    const client = new RegistryClient();
    const repository = `127.0.0.1:${server.port}/shop/hello`;
    const files = [
      { path: "lib/a.js", content: "a" },
      { path: "handler.js", content: "b" },
    ];
    const source = await createSourceImage(files, join(dir, "source.tar"));
    const again = await createSourceImage(files.toReversed(), join(dir, "again.tar"));
    expect(again.digest).toBe(source.digest);
    const { image, sentBytes } = await source.push(client, repository);
    expect(image).toBe(`${repository}@${source.digest}`);
    expect(sentBytes).toBeGreaterThan(0);
    expect(await again.push(client, repository)).toEqual({ image, sentBytes: 0 });

    await fetchSourceImage(client, image, join(dir, "out"));
    expect(readFileSync(join(dir, "out/lib/a.js"), "utf8")).toBe("a");
    // A container that is started again.
    await fetchSourceImage(client, image, join(dir, "out"));

    const read = await readSourceImage(client, image);
    expect(read?.map(({ path, content }) => [path, content.toString()])).toEqual([
      ["handler.js", "b"],
      ["lib/a.js", "a"],
    ]);
    expect(sourceDigest(read ?? [])).toBe(sourceDigest(readSource(join(dir, "out"))));

    const gone = `${repository}@sha256:${"0".repeat(64)}`;
    await expect(fetchSourceImage(client, gone, join(dir, "gone"))).rejects.toThrow(
      "is no longer in the registry: deploy the directory again",
    );
    await expect(readSourceImage(client, gone)).rejects.toThrow("is no longer in the registry");
    mkdirSync(join(dir, "full"));
    writeFileSync(join(dir, "full/handler.js"), "");
    await fetchSourceImage(client, gone, join(dir, "full"));
  } finally {
    await server.close();
    await registry.close();
  }
});

const files: [string, LayerFile[], string | undefined][] = [
  ["a link", [{ path: "handler.js", link: "lib/a.js" }], undefined],
  ["a folder of its own", [{ path: "lib", folder: true, mode: 0o755 }], undefined],
  ["a folder that is a file", [file("a"), file("a/b")], undefined],
  ["nothing but what is left out", [file("node_modules/x/a.js"), file("lib/.git/a")], "no files"],
  [
    "more left out than may be in it",
    [{ path: ".git/a", content: Buffer.alloc(1e8 + 1) }],
    "no files",
  ],
  ["what hides a file on a disk", [file("a"), file("lib/.wh.a")], undefined],
  ["a name that no disk takes", [file("a"), file("é".repeat(128))], undefined],
  ["too many files", Array.from({ length: 10_001 }, (_, at) => file(`${at}`)), "more than 10000"],
  ["folders in folders", [file(`${"a/".repeat(33)}b`)], "more than 32 folders deep"],
];
test.each(files)("a source with %s", async (_name, layer, problem) => {
  const dir = mkdtempSync(join(tmpdir(), "source-image-"));
  const registry = createRegistry({ dir: join(dir, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  try {
    const client = new RegistryClient();
    const source = await createSourceImage(layer, join(dir, "source.tar"));
    const { image } = await source.push(client, `127.0.0.1:${server.port}/shop/hello`);
    const reading = readSourceImage(client, image);
    if (problem === undefined) expect(await reading).toBeUndefined();
    else await expect(reading).rejects.toThrow(problem);
  } finally {
    await server.close();
    await registry.close();
  }
});
