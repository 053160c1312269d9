import { gunzipSync } from "node:zlib";
import * as fc from "fast-check";
import { unpackTar } from "modern-tar";
import { describe, expect, test } from "vitest";
import { createLayer, type LayerFile } from "./index.ts";

async function tarOf(files: LayerFile[]): Promise<Uint8Array> {
  const { body } = await createLayer(files);
  return gunzipSync(body?.open() as Uint8Array);
}

const name = fc.stringMatching(/^[\w äöü\u{1f600}-]{1,60}$/u).filter((text) => text.trim() !== "");
const path = fc.array(name, { minLength: 1, maxLength: 9 }).map((parts) => parts.join("/"));
const file = fc.record({
  path,
  content: fc.string({ maxLength: 1500 }),
  mode: fc.constantFrom(0o600, 0o777),
});

describe("a layer's archive", () => {
  test("is read by others as it was meant", async () => {
    const files = fc.uniqueArray(file, { maxLength: 8, selector: (each) => each.path });
    const readable = fc.asyncProperty(files, async (given) => {
      const entries = await unpackTar(await tarOf(given));
      const expected = given
        .toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
        .map(({ path, content, mode }) => ({ path, content, mode: mode & 0o100 ? 0o755 : 0o644 }));
      const actual = entries.map(({ header, data }) => ({
        path: header.name,
        content: Buffer.from(data ?? []).toString(),
        mode: header.mode,
      }));
      expect(actual).toEqual(expected);
      for (const { header } of entries)
        expect(header).toMatchObject({ uid: 0, gid: 0, mtime: new Date(0), type: "file" });
    });
    await fc.assert(readable, { numRuns: 200, seed: 1 });
  });

  test("is the same in whatever order files come", async () => {
    const files = [
      { path: "b", content: "2" },
      { path: "a/c", content: "1" },
      { path: "l", link: "b" },
    ];
    expect(await tarOf(files)).toEqual(await tarOf(files.toReversed()));
  });

  test("gives a folder the mode that its entry says", async () => {
    const files: LayerFile[] = [
      { path: "tmp", folder: true, mode: 0o1777 },
      { path: "tmp/a", content: "1" },
    ];
    const [folder] = await unpackTar(await tarOf(files));
    expect(folder?.header).toMatchObject({ type: "directory", mode: 0o1777, uid: 0, gid: 0 });
    expect(folder?.header.name.replace(/\/$/, "")).toBe("tmp");
  });

  const refused = ["/a", "a/../b", "a//b", "./a", "", "a\0b", "a/"];
  test.each(refused)("has no place for the path %j", async (path) => {
    await expect(createLayer([{ path, content: "" }])).rejects.toThrow(/not a plain relative path/);
  });

  test("has no place for two files of one path", async () => {
    const file = { path: "a", content: "" };
    await expect(createLayer([file, file])).rejects.toThrow(/a exists twice/);
  });
});
