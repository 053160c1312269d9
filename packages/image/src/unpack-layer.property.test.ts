import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as fc from "fast-check";
import { packTar, type TarEntry } from "modern-tar";
import { expect, test } from "vitest";
import { unpackLayer } from "./index.ts";
import { temporaryDirectory } from "./testing/registry.ts";

const part = fc.constantFrom(
  "a",
  "b",
  "c",
  "..",
  ".",
  "",
  "outside",
  "root",
  ".wh.a",
  ".wh..wh..opq",
);
const path = fc
  .tuple(fc.boolean(), fc.array(part, { minLength: 1, maxLength: 5 }))
  .map(([absolute, parts]) => (absolute ? "/" : "") + parts.join("/"));
const entry = fc
  .tuple(fc.constantFrom("file", "directory", "symlink", "link"), path, path)
  .map(([type, name, linkname]): TarEntry => {
    // A slash at its end would make a folder of it.
    const header = {
      name: type === "file" ? `${name}f` : name || "x",
      size: type === "file" ? 1 : 0,
      type,
      mode: 0o777,
    } as const;
    if (type === "file") return { header, body: "x" };
    return type === "directory" ? { header } : { header: { ...header, linkname: linkname || "x" } };
  });

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function linksBelow(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((each) => {
    const file = join(dir, each.name);
    if (each.isSymbolicLink()) return [file];
    return each.isDirectory() ? linksBelow(file) : [];
  });
}

test("whatever layers say, nothing outside of their directory changes, and no link leads there", async () => {
  const dir = temporaryDirectory();
  const root = join(dir, "nested", "root");
  const layers = fc.array(fc.array(entry, { minLength: 1, maxLength: 12 }), {
    minLength: 1,
    maxLength: 3,
  });
  const stays = fc.asyncProperty(layers, async (given) => {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(root, { recursive: true });
    writeFileSync(join(dir, "outside"), "untouched");
    for (const layer of given)
      await unpackLayer(once(await packTar(layer)), root).catch(() => undefined);
    expect(readdirSync(dir).sort()).toEqual(["nested", "outside"]);
    expect(readdirSync(join(dir, "nested"))).toEqual(["root"]);
    expect(readFileSync(join(dir, "outside"), "utf8")).toBe("untouched");
    for (const link of linksBelow(root))
      expect(`${resolve(link, "..", readlinkSync(link))}/`.startsWith(`${root}/`)).toBe(true);
  });
  await fc.assert(stays, { numRuns: 400, seed: 1 });
});
