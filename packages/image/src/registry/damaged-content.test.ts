/** Content that was shortened or altered on the disk: found when it is used, removed, and taken anew. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { damagedContent } from "./damaged-content.ts";
import { RegistryClient } from "../client/registry-client.ts";
import { digestOf, parseImageName } from "../index.ts";
import { startRegistry } from "../testing/registry.ts";
import { codeOf } from "../testing/registry-requests.ts";

const large = "layer ".repeat(100_000);
const small = "small layer";

function fileOf(dir: string, digest: string): string {
  const hex = digest.slice("sha256:".length);
  return join(dir, "blobs/sha256", hex.slice(0, 2), hex);
}

const push = (url: string, content: string) =>
  fetch(`${url}/v2/a/blobs/uploads/?digest=${digestOf(Buffer.from(content))}`, {
    method: "POST",
    body: content,
  });

/** As after a restart: what a registry has read itself it does not read again. */
async function damaged(content: string, harm: (file: string) => void) {
  const first = await startRegistry();
  expect((await push(first.url, content)).status).toBe(201);
  const digest = digestOf(Buffer.from(content));
  harm(fileOf(first.dir, digest));
  const { url } = await startRegistry({ dir: first.dir });
  return { url, dir: first.dir, digest, blob: `${url}/v2/a/blobs/${digest}` };
}

const alter = (file: string) => {
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(file, bytes);
};

describe.each([
  ["a large blob", large],
  ["a small blob", small],
])("%s", (_what, content) => {
  test.each<[string, (file: string) => void]>([
    ["shortened", (file) => truncateSync(file, content.length - 5)],
    ["emptied", (file) => truncateSync(file, 0)],
    ["altered", alter],
  ])("that was %s is not sent, and is there again once it is pushed", async (_how, harm) => {
    const { url, blob } = await damaged(content, harm);
    const answer = await fetch(blob);
    expect(await codeOf(answer)).toBe("404 BLOB_UNKNOWN");
    expect((await fetch(blob, { method: "HEAD" })).status).toBe(404);
    expect((await push(url, content)).status).toBe(201);
    expect(await (await fetch(blob)).text()).toBe(content);
  });

  test("that was shortened is not there for who asks before a push", async () => {
    const { blob } = await damaged(content, (file) => truncateSync(file, 3));
    expect((await fetch(blob, { method: "HEAD" })).status).toBe(404);
  });

  test("that was shortened is replaced by a push without a question before", async () => {
    const { url, blob } = await damaged(content, (file) => truncateSync(file, 3));
    expect((await push(url, content)).status).toBe(201);
    expect(await (await fetch(blob)).text()).toBe(content);
  });

  test("that was shortened while the registry runs is found, too", async () => {
    const { url, dir } = await startRegistry();
    await push(url, content);
    const digest = digestOf(Buffer.from(content));
    expect((await fetch(`${url}/v2/a/blobs/${digest}`)).status).toBe(200);
    truncateSync(fileOf(dir, digest), 3);
    expect((await fetch(`${url}/v2/a/blobs/${digest}`)).status).toBe(404);
  });

  test("that was damaged is not mounted into another repository", async () => {
    const { url, digest } = await damaged(content, alter);
    const mounted = await fetch(`${url}/v2/b/blobs/uploads/?mount=${digest}&from=a`, {
      method: "POST",
    });
    expect(mounted.status).toBe(202);
  });
});

test("a damaged manifest is unknown, and its image is not half an image", async () => {
  const first = await startRegistry();
  await push(first.url, small);
  await push(first.url, "{}");
  const descriptor = (content: string, mediaType: string) => ({
    mediaType,
    digest: digestOf(Buffer.from(content)),
    size: content.length,
  });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: descriptor("{}", "application/vnd.oci.image.config.v1+json"),
    layers: [descriptor(small, "application/vnd.oci.image.layer.v1.tar")],
  });
  const headers = { "content-type": "application/vnd.oci.image.manifest.v1+json" };
  const put = () =>
    fetch(`${first.url}/v2/a/manifests/1`, { method: "PUT", headers, body: manifest });
  expect((await put()).status).toBe(201);
  truncateSync(fileOf(first.dir, digestOf(Buffer.from(manifest))), 20);
  const answer = await fetch(`${first.url}/v2/a/manifests/1`);
  expect(await codeOf(answer)).toBe("404 MANIFEST_UNKNOWN");
  const client = new RegistryClient();
  const name = parseImageName(`${first.host}/a:1`);
  await expect(client.resolveImage(name)).rejects.toThrow(/MANIFEST_UNKNOWN|manifest/);
  expect((await put()).status).toBe(201);
  expect((await fetch(`${first.url}/v2/a/manifests/1`)).status).toBe(200);
});

test("a look at all of it names what is damaged, and changes nothing", async () => {
  const { url, dir } = await startRegistry();
  await push(url, large);
  await push(url, small);
  const digest = digestOf(Buffer.from(small));
  alter(fileOf(dir, digest));
  const found = [];
  let checked = 0;
  for await (const each of damagedContent(dir, () => checked++)) found.push(each);
  expect(found).toEqual([{ digest, file: fileOf(dir, digest) }]);
  expect(checked).toBe(2);
  expect(readdirSync(join(dir, "blobs/sha256")).length).toBeGreaterThan(1);
});
