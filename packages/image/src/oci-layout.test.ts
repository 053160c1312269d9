import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { assembleImage } from "./assemble-image.ts";
import { createLayer } from "./layer.ts";
import { type ImageIndex } from "./manifest.ts";
import { writeToLayout } from "./oci-layout.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "oci-layout-"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const imageOf = async (content: string) =>
  assembleImage({ layers: [await createLayer([{ path: "file", content }])] });
const index = () => JSON.parse(readFileSync(path.join(dir, "index.json"), "utf8")) as ImageIndex;
const names = () => index().manifests.map((one) => one.annotations?.["io.containerd.image.name"]);

test("every blob is named by its digest, and the index names the images", async () => {
  await writeToLayout(dir, "example.test/b:1", await imageOf("b"));
  await writeToLayout(dir, "example.test/a:1", await imageOf("a"));
  expect(names()).toEqual(["example.test/a:1", "example.test/b:1"]);
  const blobs = path.join(dir, "blobs", "sha256");
  for (const name of readdirSync(blobs)) {
    const content = readFileSync(path.join(blobs, name));
    expect(createHash("sha256").update(content).digest("hex")).toBe(name);
  }
  expect(JSON.parse(readFileSync(path.join(dir, "oci-layout"), "utf8"))).toEqual({
    imageLayoutVersion: "1.0.0",
  });
});

test("a name that is there means the newer image afterwards", async () => {
  const image = await imageOf("newer");
  await writeToLayout(dir, "example.test/a:1", image);
  expect(names()).toEqual(["example.test/a:1", "example.test/b:1"]);
  expect(index().manifests[0]?.digest).toBe(image.digest);
});

test("a layer without content cannot be written", async () => {
  const image = await imageOf("gone");
  const layers = image.layers.map(({ descriptor, diffId }) => ({ descriptor, diffId }));
  layers[0]!.descriptor = { ...layers[0]!.descriptor, digest: `sha256:${"0".repeat(64)}` };
  await expect(writeToLayout(dir, "example.test/c:1", { ...image, layers })).rejects.toThrow(
    /has no content/,
  );
});
