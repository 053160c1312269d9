import { describe, expect, test } from "vitest";
import { mediaTypes } from "../index.ts";
import { startRegistry } from "../testing/registry.ts";
import { codeOf, other, put, putManifest } from "../testing/registry-requests.ts";

describe("a registry's manifests", () => {
  test("are found by tag and digest, with the type they came with", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a");
    const pushed = await putManifest(url, "a", "v1", { config, layers: [] });
    expect(pushed.answer.status).toBe(201);
    expect(pushed.answer.headers.get("docker-content-digest")).toBe(pushed.digest);
    for (const reference of ["v1", pushed.digest]) {
      const found = await fetch(`${url}/v2/a/manifests/${reference}`);
      expect(found.headers.get("content-type")).toBe(mediaTypes.manifest);
      expect(await found.text()).toBe(pushed.body);
      const head = await fetch(`${url}/v2/a/manifests/${reference}`, { method: "HEAD" });
      expect(head.headers.get("content-length")).toBe(String(pushed.body.length));
    }
    expect((await fetch(`${url}/v2/a/manifests/v1`, { method: "DELETE" })).status).toBe(202);
    expect(await codeOf(await fetch(`${url}/v2/a/manifests/v1`))).toBe("404 MANIFEST_UNKNOWN");
    expect((await fetch(`${url}/v2/a/manifests/${pushed.digest}`)).status).toBe(200);
  });

  const refused = [
    { name: "no JSON", manifest: "{", why: "400 MANIFEST_INVALID" },
    { name: "nothing but null", manifest: "null", why: "400 MANIFEST_INVALID" },
    { name: "another schema", manifest: '{"schemaVersion":1}', why: "400 MANIFEST_INVALID" },
    {
      name: "another type inside",
      manifest: `{"schemaVersion":2,"mediaType":"${mediaTypes.index}"}`,
      why: "400 MANIFEST_INVALID",
    },
    {
      name: "neither layers nor manifests",
      manifest: '{"schemaVersion":2}',
      why: "400 MANIFEST_INVALID",
    },
    {
      name: "null for a list",
      manifest: '{"schemaVersion":2,"manifests":null}',
      why: "400 MANIFEST_INVALID",
    },
    {
      name: "null for a list, and layers",
      manifest: '{"schemaVersion":2,"manifests":null,"layers":[]}',
      why: "400 MANIFEST_INVALID",
    },
    {
      name: "a strange digest",
      manifest: '{"schemaVersion":2,"manifests":[{"mediaType":"a","digest":"../../x","size":1}]}',
      why: "400 MANIFEST_INVALID",
    },
    {
      name: "blobs that are not there",
      manifest: `{"schemaVersion":2,"config":{"mediaType":"a","digest":"${other}","size":1},"layers":[]}`,
      why: "404 MANIFEST_BLOB_UNKNOWN",
    },
    { name: "more than 4 MiB", manifest: " ".repeat(4 * 1024 * 1024 + 1), why: "413 SIZE_INVALID" },
  ];
  test.each(refused)("are refused with $name", async ({ manifest, why }) => {
    const { url } = await startRegistry();
    const headers = { "content-type": mediaTypes.manifest };
    const answer = await fetch(`${url}/v2/a/manifests/v1`, {
      method: "PUT",
      headers,
      body: manifest,
    });
    expect(await codeOf(answer)).toBe(why);
  });

  test("that refer to another are listed with it", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a");
    const subject = { mediaType: mediaTypes.manifest, digest: other, size: 5 };
    const pushed = await putManifest(url, "a", "signature", {
      config,
      layers: [],
      subject,
      artifactType: "application/x.signature",
      annotations: { by: "me" },
    });
    expect(pushed.answer.headers.get("oci-subject")).toBe(other);
    const referrers = async (query = "") => {
      const answer = await fetch(`${url}/v2/a/referrers/${other}${query}`);
      expect(answer.headers.get("content-type")).toBe(mediaTypes.index);
      const { manifests } = (await answer.json()) as { manifests: object[] };
      return { manifests, filtered: answer.headers.get("oci-filters-applied") };
    };
    const entry = {
      mediaType: mediaTypes.manifest,
      digest: pushed.digest,
      size: pushed.body.length,
      artifactType: "application/x.signature",
      annotations: { by: "me" },
    };
    expect(await referrers()).toEqual({ manifests: [entry], filtered: null });
    expect(await referrers("?artifactType=x")).toEqual({ manifests: [], filtered: "artifactType" });
    await fetch(`${url}/v2/a/manifests/${pushed.digest}`, { method: "DELETE" });
    expect((await referrers()).manifests).toEqual([]);
    expect((await fetch(`${url}/v2/a/manifests/signature`)).status).toBe(404);
  });

  test("a tag that cannot be is refused where it would be set", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a");
    const { answer } = await putManifest(url, "a", "-x", { config, layers: [] });
    expect(await codeOf(answer)).toBe("400 TAG_INVALID");
  });

  test("a push by digest sets the tags that it names", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a");
    const manifest = { config, layers: [] };
    const { digest: pushed } = await putManifest(url, "a", "v0", manifest);
    const { answer } = await putManifest(url, "a", `${pushed}?tag=v1&tag=v2`, manifest);
    expect(answer.headers.get("oci-tag")).toBe("v1, v2");
    const { tags } = (await (await fetch(`${url}/v2/a/tags/list`)).json()) as { tags: string[] };
    expect(tags).toEqual(["v0", "v1", "v2"]);
  });

  test("an index may be about something that is not there", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a");
    const { digest: entry, body } = await putManifest(url, "a", "v1", { config, layers: [] });
    const manifests = [{ mediaType: mediaTypes.manifest, digest: entry, size: body.length }];
    const subject = { mediaType: mediaTypes.manifest, digest: other, size: 9 };
    for (const index of [
      { manifests, subject },
      { manifests: [], subject },
    ]) {
      const { answer } = await putManifest(url, "a", "index", index, mediaTypes.index);
      expect([answer.status, answer.headers.get("oci-subject")]).toEqual([201, other]);
    }
  });
});
