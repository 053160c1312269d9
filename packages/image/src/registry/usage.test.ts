import { expect, test } from "vitest";
import { hour, key, oldRegistry } from "../testing/old-registry.ts";

test("a registry reports what it stores, by repository, and why each image stays", async () => {
  const { registry, putBlob, putImage, putManifest } = await oldRegistry({
    retention: { previousImages: 1 },
    aheadMs: hour,
  });
  const [gone, used, earlier] = [
    await putImage("ns/fn", key(1), "one"),
    await putImage("ns/fn", key(2), "four"),
    await putImage("ns/fn", key(3), "three"),
  ];
  const { descriptor: config } = await putBlob("ns/fn", "{}");
  await putManifest("ns/fn", undefined, { config, layers: [], subject: used });
  await putImage("ns/dependencies.cache/nodejs24", "k", "packages");
  await putImage("my/base", "v1", "own");
  const usage = await registry.usage({
    references: [`ns/fn@${used.digest}`],
    functions: ["ns/fn"],
  });
  expect(usage).toMatchObject({ previousImages: 1, stored: expect.any(Number) });
  const byName = new Map(usage.repositories.map((each) => [each.name, each]));
  const reasons = byName.get("ns/fn")?.images.map(({ digest, reason }) => [digest, reason]);
  // An image's bill of materials is not listed as an image. The newest image comes first.
  expect(reasons).toEqual([
    [earlier.digest, "previous"],
    [used.digest, "used"],
    [gone.digest, null],
  ]);
  expect(byName.get("ns/fn")).toMatchObject({ kind: "function", imageCount: 3 });
  expect(byName.get("ns/fn")?.images[1]?.bytes).toBe("{}four".length);
  expect(byName.get("ns/dependencies.cache/nodejs24")).toMatchObject({
    kind: "cache",
    images: [{ reason: "cached" }],
  });
  // In its own repository, a user's image stays whatever it is called.
  expect(byName.get("my/base")).toMatchObject({ images: [{ reason: "foreign" }] });
  const sizes = usage.repositories.map(({ bytes }) => bytes);
  expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
});
