import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { digestOf } from "./digest.ts";
import { createLayer } from "./layer.ts";
import { temporaryDirectory } from "./testing/registry.ts";

/** The first bytes of a frame (RFC 8878, section 3.1.1). */
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

describe("a layer by way of a file", () => {
  // Files are read in pieces of 64 KiB: when the last and shorter one is compressed, the end may be known already or not.
  test.each([0, 1, 1_000, 20_000, 45_424, 60_000, 65_000])(
    "is one frame when the last piece of a file has %i bytes",
    async (rest) => {
      const dir = temporaryDirectory();
      const file = join(dir, "large");
      writeFileSync(file, Buffer.alloc(17 * 1024 * 1024 + rest, "spry "));
      const scratchFile = join(dir, "layer");
      const layer = await createLayer([{ path: "large", file }], { scratchFile });
      const bytes = readFileSync(scratchFile);
      expect(bytes.lastIndexOf(zstdMagic)).toBe(0);
      expect(digestOf(bytes)).toBe(layer.descriptor.digest);
      expect(digestOf(zstdDecompressSync(bytes))).toBe(layer.diffId);
    },
  );

  test("says what it cannot read or write", async () => {
    const dir = temporaryDirectory();
    const file = join(dir, "large");
    writeFileSync(file, Buffer.alloc(17 * 1024 * 1024));
    const nowhere = join(dir, "nowhere", "layer");
    await expect(createLayer([{ path: "a", file }], { scratchFile: nowhere })).rejects.toThrow(
      /ENOENT.*nowhere/,
    );
    const missing = join(dir, "missing");
    mkdirSync(missing);
    const files = [
      { path: "a", file },
      { path: "b", file: missing },
    ];
    const scratchFile = join(dir, "layer");
    await expect(createLayer(files, { scratchFile })).rejects.toThrow(/EISDIR|missing/);
  });
});
