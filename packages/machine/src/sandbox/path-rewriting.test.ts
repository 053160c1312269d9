import { mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { buildRootView } from "./path-rewriting.ts";

/** An image, a volume that containers write to, and one that is mounted below it. */
function places() {
  const dir = temporaryDirectory();
  const [image = "", volume = "", inner = "", outside = "", root = ""] = [
    "image",
    "volume",
    "inner",
    "outside",
    "root",
  ].map((name) => path.join(dir, name));
  for (const each of [image, volume, inner, outside]) mkdirSync(each);
  writeFileSync(path.join(outside, "secret-name"), "");
  return { image, volume, inner, outside, root };
}

test("next to a mount, there are links to what the image and the volume have", async () => {
  const { image, volume, inner, root } = places();
  writeFileSync(path.join(image, "x"), "");
  mkdirSync(path.join(volume, "sub"));
  writeFileSync(path.join(volume, "sub", "y"), "");
  await buildRootView(root, image, [
    { mountPath: "/data", source: volume },
    { mountPath: "/data/sub/inner", source: inner },
  ]);
  expect(readlinkSync(path.join(root, "x"))).toBe(path.join(image, "x"));
  expect(readdirSync(path.join(root, "data", "sub")).toSorted()).toEqual(["inner", "y"]);
});

test.skipIf(process.platform !== "linux")(
  "a link that a container has put in the way of a mount shows nothing of this machine, not even names",
  async () => {
    const { image, volume, inner, outside, root } = places();
    symlinkSync(outside, path.join(volume, "sub"));
    await buildRootView(root, image, [
      { mountPath: "/data", source: volume },
      { mountPath: "/data/sub/inner", source: inner },
    ]);
    expect(readdirSync(path.join(root, "data", "sub"))).toEqual(["inner"]);
  },
);

test("a directory with too many entries next to a mount is refused, and none of them is held in memory", async () => {
  const { image, inner, root } = places();
  mkdirSync(path.join(image, "app"));
  for (let i = 0; i <= 10_000; i++) writeFileSync(path.join(image, "app", String(i)), "");
  await expect(
    buildRootView(root, image, [{ mountPath: "/app/data", source: inner }]),
  ).rejects.toThrow("a directory with a mount below it has more than 10000 entries");
});
