import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { digestOf } from "../index.ts";
import { hour, key, oldRegistry, type Old } from "../testing/old-registry.ts";

describe("cleaning", () => {
  test("leaves of a Function what is in use and the newest images before it", async () => {
    const { registry, putImage, has, tagsOf } = await oldRegistry({
      retention: { previousImages: 2 },
    });
    const images = [];
    for (let n = 1; n <= 6; n++) images.push(await putImage("ns/fn", key(n)));
    const used = images[1]?.digest ?? "";
    const result = await registry.clean({ references: [`ns/fn@${used}`], functions: ["ns/fn"] });
    expect(result).toMatchObject({ manifests: 3, blobs: 6 });
    expect(await tagsOf("ns/fn")).toEqual([key(2), key(5), key(6)]);
    expect(await has("ns/fn", used)).toBe(true);
    expect(await has("ns/fn", digestOf(key(2)), "blobs")).toBe(true);
    expect(await has("ns/fn", digestOf(key(1)), "blobs")).toBe(false);
  });

  test("keeps sources as it keeps images, and neither takes the other's place", async () => {
    const { registry, putImage, tagsOf } = await oldRegistry({ retention: { previousImages: 2 } });
    const sources = [];
    for (let n = 1; n <= 4; n++) {
      await putImage("ns/fn", key(n));
      sources.push(await putImage("ns/fn", `source-${key(n + 10)}`));
    }
    const references = [`ns/fn@${sources[0]?.digest}`];
    await registry.clean({ references, functions: ["ns/fn"] });
    const kept = [key(3), key(4), ...[11, 13, 14].map((n) => `source-${key(n)}`)];
    expect(await tagsOf("ns/fn")).toEqual(kept.sort());
    await registry.clean({ references: [], functions: [] });
    expect(await tagsOf("ns/fn")).toBeUndefined();
  });

  test("frees everything of a Function that is gone", async () => {
    const { registry, url, putImage } = await oldRegistry();
    await putImage("ns/fn", key(1));
    await putImage("ns/fn", undefined, "untagged");
    expect(await registry.clean({ references: [], functions: [] })).toMatchObject({ blobs: 5 });
    const catalog = await (await fetch(`${url}/v2/_catalog`)).json();
    expect(catalog).toEqual({ repositories: [] });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("spry_registry_blobs 0");
  });

  const others = [
    { repository: "my/base", tag: "v1", stays: true, why: "is somebody's own" },
    { repository: "base", tag: "v1", stays: true, why: "has a tag that no build gives" },
    { repository: "spry/nodejs24", tag: "used", stays: true, why: "is what builds start from" },
    { repository: "spry/nodejs24", tag: "old", stays: false, why: "is what builds started from" },
    {
      repository: "shop/dependencies.cache/nodejs24",
      tag: "k",
      stays: true,
      why: "is a dependency layer",
    },
    {
      repository: "shop/dependencies.cache/nodejs24",
      tag: "k",
      stays: false,
      aheadMs: 31 * 24 * hour,
      why: "is a dependency layer that nobody has used for a month",
    },
  ];
  test.each(others)(
    "$stays: $repository:$tag $why",
    async ({ repository, tag, stays, ...rest }) => {
      const { registry, putImage, has } = await oldRegistry(rest);
      const { digest } = await putImage(repository, tag);
      await registry.clean({ references: ["spry/nodejs24:used"], functions: [] });
      expect(await has(repository, digest)).toBe(stays);
    },
  );

  test("what stays takes along the entries of its index and what is about it", async () => {
    const { registry, putBlob, putImage, putManifest, has } = await oldRegistry();
    const entry = await putImage("ns/fn", undefined, "entry");
    const index = await putManifest("ns/fn", key(1), { manifests: [entry] });
    const { descriptor: config } = await putBlob("ns/fn", "{}");
    const about = { config, layers: [], subject: index };
    const statement = await putManifest("ns/fn", undefined, about);
    const lost = await putManifest("ns/fn", undefined, { ...about, subject: config });
    await registry.clean({ references: [`ns/fn:${key(1)}`], functions: [] });
    for (const { digest } of [entry, index, statement])
      expect(await has("ns/fn", digest)).toBe(true);
    expect(await has("ns/fn", lost.digest)).toBe(false);
  });

  test("an index without a list, and a repository that cannot be read, do not stop it", async () => {
    const { registry, dir, putImage, putManifest, has } = await oldRegistry({
      retention: { previousImages: 0 },
    });
    const former = await putImage("ns/fn", key(3));
    // As an earlier version has stored it.
    const stored = await putManifest("ns/fn", key(1), { manifests: [] });
    const body = JSON.stringify({ schemaVersion: 2, mediaType: stored.mediaType, manifests: null });
    const hex = digestOf(body).slice(7);
    const { mediaType } = stored;
    mkdirSync(join(dir, "blobs/sha256", hex.slice(0, 2)), { recursive: true });
    writeFileSync(join(dir, "blobs/sha256", hex.slice(0, 2), hex), body);
    const manifests = join(dir, "repositories/ns/fn/_manifests");
    writeFileSync(join(manifests, hex), JSON.stringify({ mediaType }));
    const kept = await putImage("ns/broken", key(1));
    const gone = await putImage("ns/gone", key(2));
    const record = join(dir, "repositories/ns/broken/_manifests", kept.digest.slice(7));
    const written = readFileSync(record);
    writeFileSync(record, "{");
    await registry.clean({ references: [`ns/fn:${key(1)}`], functions: ["ns/fn"] });
    writeFileSync(record, written);
    expect(await has("ns/fn", digestOf(body))).toBe(true);
    expect(await has("ns/fn", former.digest)).toBe(false);
    expect(await has("ns/gone", gone.digest)).toBe(false);
    expect(await has("ns/broken", kept.digest)).toBe(true);
    expect(await has("ns/broken", digestOf(key(1)), "blobs")).toBe(true);
  });

  test("what is about an image stays as long as that, and goes with it", async () => {
    const old = await oldRegistry({ retention: { previousImages: 0 } });
    const { registry, url, putBlob, putImage, putManifest, has, tagsOf, elapse } = old;
    const image = await putImage("ns/fn", key(1));
    const { descriptor: config } = await putBlob("ns/fn", "{}");
    const documentOf = async (text: string) => {
      const { descriptor } = await putBlob("ns/fn", text);
      return putManifest("ns/fn", undefined, { config, layers: [descriptor], subject: image });
    };
    const documents = [await documentOf("bill of materials"), await documentOf("provenance")];
    const fallback = `sha256-${image.digest.slice(7)}`;
    const list = await putManifest("ns/fn", fallback, { manifests: documents });
    await putImage("ns/fn", `${fallback}.sig`);
    const everything = [image, ...documents, list];

    const functions = ["ns/fn"];
    await registry.clean({ references: [`ns/fn@${image.digest}`], functions });
    for (const { digest } of everything) expect(await has("ns/fn", digest)).toBe(true);
    expect(await tagsOf("ns/fn")).toEqual([key(1), fallback, `${fallback}.sig`].sort());

    elapse(hour);
    await registry.clean({ references: [], functions });
    for (const { digest } of everything) expect(await has("ns/fn", digest)).toBe(false);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("spry_registry_blobs 0");
  });

  test("nothing goes that was pushed or asked for a moment ago", async () => {
    const { registry, putBlob, putImage, has } = await oldRegistry({ aheadMs: 0 });
    const { digest } = await putImage("ns/fn", key(1));
    const { descriptor: blob } = await putBlob("ns/fn", "waits for its manifest");
    expect(await registry.clean({ references: [], functions: [] })).toMatchObject({ blobs: 0 });
    expect(await has("ns/fn", digest)).toBe(true);
    expect(await has("ns/fn", blob.digest, "blobs")).toBe(true);
  });

  // A push is several requests, and a sweep may come between any two of them.
  const pushes: { how: string; begin: (of: Old, digest: string) => Promise<Response> }[] = [
    {
      how: "asks whether the blob is there",
      begin: ({ url }, digest) => fetch(`${url}/v2/ns/fn/blobs/${digest}`, { method: "HEAD" }),
    },
    {
      how: "mounts the blob",
      begin: ({ url }, digest) =>
        fetch(`${url}/v2/ns/fn/blobs/uploads/?mount=${digest}&from=other/one`, { method: "POST" }),
    },
    {
      how: "sends the blob once more",
      begin: async ({ putBlob }) => (await putBlob("ns/fn", "content")).answer,
    },
  ];
  test.each(pushes)("a push that $how finds it after a sweep", async ({ begin }) => {
    const old = await oldRegistry({ aheadMs: 0 });
    const { registry, url, putBlob, putManifest, has, elapse } = old;
    const { descriptor: layer } = await putBlob("ns/fn", "content");
    await putBlob("other/one", "content");
    elapse(hour);
    expect((await begin(old, layer.digest)).ok).toBe(true);
    const upload = await fetch(`${url}/v2/ns/fn/blobs/uploads/`, { method: "POST", body: "" });
    expect(await registry.clean({ references: [], functions: [] })).toMatchObject({ blobs: 0 });
    const { descriptor: config } = await putBlob("ns/fn", "{}");
    const { digest } = await putManifest("ns/fn", key(1), { config, layers: [layer] });
    await registry.clean({ references: [], functions: [] });
    expect(await has("ns/fn", digest)).toBe(true);
    expect(await has("ns/fn", layer.digest, "blobs")).toBe(true);
    const location = url + (upload.headers.get("location") ?? "");
    const end = await fetch(`${location}?digest=${digestOf("late")}`, {
      method: "PUT",
      body: "late",
    });
    expect(end.status).toBe(201);
  });

  test("a pull keeps an image for a while", async () => {
    const { registry, url, putImage, has, elapse } = await oldRegistry({ aheadMs: 0 });
    const { digest } = await putImage("ns/fn", key(1));
    elapse(hour);
    await fetch(`${url}/v2/ns/fn/manifests/${digest}`);
    await registry.clean({ references: [], functions: [] });
    expect(await has("ns/fn", digest)).toBe(true);
    elapse(hour);
    await registry.clean({ references: [], functions: [] });
    expect(await has("ns/fn", digest)).toBe(false);
  });
});
