import { once } from "node:events";
import { readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { digestOf, mediaTypes } from "../index.ts";
import { startRegistry } from "../testing/registry.ts";

const content = Buffer.from("0123456789");
const digest = digestOf(content);
const other = digestOf("other");

async function put(url: string, repository: string, bytes: Buffer = content) {
  const query = `digest=${digestOf(bytes)}`;
  const answer = await fetch(`${url}/v2/${repository}/blobs/uploads/?${query}`, {
    method: "POST",
    body: new Uint8Array(bytes),
  });
  expect(answer.status).toBe(201);
  return { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length };
}

async function putManifest(
  url: string,
  repository: string,
  reference: string,
  manifest: object,
  type: string = mediaTypes.manifest,
) {
  const body = JSON.stringify({ schemaVersion: 2, mediaType: type, ...manifest });
  const answer = await fetch(`${url}/v2/${repository}/manifests/${reference}`, {
    method: "PUT",
    headers: { "content-type": type },
    body,
  });
  return { answer, digest: digestOf(body), body };
}

async function codeOf(answer: Response): Promise<string> {
  const { errors } = (await answer.json()) as { errors: { code: string; message: string }[] };
  expect(errors[0]?.message).toBeTruthy();
  return `${answer.status} ${errors[0]?.code}`;
}

describe("a registry's blobs", () => {
  test("are taken in one request, in two, and in chunks", async () => {
    const { url } = await startRegistry();
    const uploads = `${url}/v2/a/b/blobs/uploads/`;
    expect(
      (await fetch(`${uploads}?digest=${digest}`, { method: "POST", body: content })).status,
    ).toBe(201);

    const opened = await fetch(uploads, { method: "POST" });
    expect(opened.status).toBe(202);
    const two = new URL(opened.headers.get("location") ?? "", url);
    two.searchParams.set("digest", digest);
    const closed = await fetch(two, { method: "PUT", body: content });
    expect(closed.status).toBe(201);
    expect(closed.headers.get("location")).toBe(`/v2/a/b/blobs/${digest}`);

    const chunks = new URL(
      (await fetch(uploads, { method: "POST" })).headers.get("location") ?? "",
      url,
    );
    const patch = (range: string, body: string) =>
      fetch(chunks, { method: "PATCH", headers: { "content-range": range }, body });
    const first = await patch("0-3", "0123");
    expect([first.status, first.headers.get("range")]).toEqual([202, "0-3"]);
    expect((await patch("6-9", "6789")).status).toBe(416);
    expect((await patch("4-7", "4567")).status).toBe(202);
    const status = await fetch(chunks);
    expect([status.status, status.headers.get("range")]).toEqual([204, "0-7"]);
    const done = await fetch(`${chunks}?digest=${digest}`, {
      method: "PUT",
      headers: { "content-range": "8-9" },
      body: "89",
    });
    expect(done.status).toBe(201);
    expect(await (await fetch(`${url}/v2/a/b/blobs/${digest}`)).text()).toBe("0123456789");
  });

  const ranges = [
    { range: "bytes=2-4", status: 206, body: "234", header: "bytes 2-4/10" },
    { range: "bytes=7-", status: 206, body: "789", header: "bytes 7-9/10" },
    { range: "bytes=-2", status: 206, body: "89", header: "bytes 8-9/10" },
    { range: "bytes=8-99", status: 206, body: "89", header: "bytes 8-9/10" },
    { range: "bytes=0-1,3-4", status: 200, body: "0123456789", header: null },
    { range: "bytes=10-", status: 416, body: undefined, header: "bytes */10" },
  ];
  test.each(ranges)("are given in part: $range", async ({ range, status, body, header }) => {
    const { url } = await startRegistry();
    await put(url, "a");
    const answer = await fetch(`${url}/v2/a/blobs/${digest}`, { headers: { range } });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([status, header]);
    if (body !== undefined) expect(await answer.text()).toBe(body);
  });

  test("belong to the repositories they were sent to or mounted in", async () => {
    const { url } = await startRegistry();
    await put(url, "a");
    const head = async (repository: string) =>
      (await fetch(`${url}/v2/${repository}/blobs/${digest}`, { method: "HEAD" })).status;
    expect([await head("a"), await head("b")]).toEqual([200, 404]);
    const mount = (from: string) =>
      fetch(`${url}/v2/b/blobs/uploads/?mount=${digest}&from=${from}`, { method: "POST" });
    expect((await mount("nowhere")).status).toBe(202);
    expect((await mount("a")).status).toBe(201);
    expect(await head("b")).toBe(200);
    expect((await fetch(`${url}/v2/a/blobs/${digest}`, { method: "DELETE" })).status).toBe(202);
    expect([await head("a"), await head("b")]).toEqual([404, 200]);
  });

  test("that are not what their digest says leave nothing behind", async () => {
    const { url, dir } = await startRegistry();
    const answer = await fetch(`${url}/v2/a/blobs/uploads/?digest=${other}`, {
      method: "POST",
      body: content,
    });
    expect(await codeOf(answer)).toBe("400 DIGEST_INVALID");
    expect((await fetch(`${url}/v2/a/blobs/${other}`)).status).toBe(404);
    expect(readdirSync(join(dir, "scratch"))).toEqual([]);
  });

  test("that break off can be gone on with", async () => {
    const { url } = await startRegistry();
    const location =
      (await fetch(`${url}/v2/a/blobs/uploads/`, { method: "POST" })).headers.get("location") ?? "";
    const broken = request(new URL(location, url), {
      method: "PATCH",
      headers: { "content-length": 10 },
    });
    broken.on("error", () => {});
    broken.write("01234");
    await new Promise((resolve) => setTimeout(resolve, 50));
    broken.destroy();
    await once(broken, "close").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await fetch(new URL(location, url))).headers.get("range")).toBe("0-4");
    const rest = await fetch(new URL(`${location}?digest=${digest}`, url), {
      method: "PUT",
      body: "56789",
    });
    expect(rest.status).toBe(201);
  });
});

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
});

describe("a registry's rarer requests", () => {
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
      { manifests: null, subject },
    ]) {
      const { answer } = await putManifest(url, "a", "index", index, mediaTypes.index);
      expect([answer.status, answer.headers.get("oci-subject")]).toEqual([201, other]);
    }
  });

  test("sha512 addresses what was pushed by it", async () => {
    const { url } = await startRegistry();
    const long = digestOf(content, "sha512");
    const push = (to: string, body: Buffer) =>
      fetch(`${url}/v2/a/blobs/uploads/?digest=${to}`, {
        method: "POST",
        body: new Uint8Array(body),
      });
    expect((await push(long, content)).status).toBe(201);
    expect(await codeOf(await push(long, Buffer.from("else")))).toBe("400 DIGEST_INVALID");
    expect(await (await fetch(`${url}/v2/a/blobs/${long}`)).text()).toBe("0123456789");
    expect((await fetch(`${url}/v2/a/blobs/${digest}`)).status).toBe(404);
  });

  test("a mount without a source takes the blob from wherever it is", async () => {
    const { url } = await startRegistry();
    await put(url, "a");
    const mount = (of: string) =>
      fetch(`${url}/v2/b/blobs/uploads/?mount=${of}`, { method: "POST" });
    expect((await mount(digest)).status).toBe(201);
    expect((await mount(other)).status).toBe(202);
    expect((await fetch(`${url}/v2/b/blobs/${digest}`)).status).toBe(200);
  });
});

describe("a registry", () => {
  test("lists tags page by page, sorted", async () => {
    const { url } = await startRegistry();
    const config = await put(url, "a/b");
    for (const tag of ["c", "a", "B", "b"])
      await putManifest(url, "a/b", tag, { config, layers: [] });
    const list = async (query: string) => {
      const answer = await fetch(`${url}/v2/a/b/tags/list${query}`);
      return { ...((await answer.json()) as object), link: answer.headers.get("link") };
    };
    expect(await list("")).toEqual({ name: "a/b", tags: ["B", "a", "b", "c"], link: null });
    expect(await list("?n=2")).toEqual({
      name: "a/b",
      tags: ["B", "a"],
      link: '</v2/a/b/tags/list?n=2&last=a>; rel="next"',
    });
    expect(await list("?n=2&last=a")).toEqual({ name: "a/b", tags: ["b", "c"], link: null });
    expect(await list("?n=0")).toMatchObject({ tags: [] });
    expect(await codeOf(await fetch(`${url}/v2/none/tags/list`))).toBe("404 NAME_UNKNOWN");
    expect(await (await fetch(`${url}/v2/_catalog`)).json()).toEqual({ repositories: ["a/b"] });
  });

  const paths = [
    { path: "/v2/UPPER/tags/list", why: "400 NAME_INVALID" },
    { path: "/v2/a/_tags/tags/list", why: "400 NAME_INVALID" },
    { path: "/v2/a%2f..%2f..%2fb/tags/list", why: "400 NAME_INVALID" },
    { path: "/v2/a/blobs/sha256:12", why: "400 DIGEST_INVALID" },
    { path: "/v2/a/blobs/sha512:12", why: "400 DIGEST_INVALID" },
    { path: "/v2/a/manifests/-x", why: "404 MANIFEST_UNKNOWN" },
    { path: `/v2/a/manifests/${"x".repeat(129)}`, why: "404 MANIFEST_UNKNOWN" },
    { path: `/v2/a/blobs/${other}`, why: "404 BLOB_UNKNOWN" },
    { path: "/v2/a/blobs/uploads/123", why: "404 BLOB_UPLOAD_UNKNOWN" },
    { path: "/v1/", why: "404 UNSUPPORTED" },
  ];
  test.each(paths)("answers $path with $why", async ({ path, why }) => {
    const { url } = await startRegistry();
    expect(await codeOf(await fetch(url + path))).toBe(why);
  });

  test("lets in who knows the password, and nobody else", async () => {
    const { url } = await startRegistry({ credentials: { username: "spry", password: "a:b" } });
    const status = async (pair?: string) => {
      const authorization =
        pair === undefined
          ? {}
          : { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
      const answer = await fetch(`${url}/v2/`, { headers: authorization });
      return `${answer.status} ${answer.headers.get("www-authenticate") ?? ""}`;
    };
    expect(await status("spry:a:b")).toBe("200 ");
    for (const wrong of [undefined, "", "spry:", "spry:a", "Spry:a:b"])
      expect(await status(wrong)).toBe('401 Basic realm="registry"');
  });

  test("bounds a blob's size, by length and on the way", async () => {
    const { url } = await startRegistry({ blobSizeLimit: 5 });
    const answer = await fetch(`${url}/v2/a/blobs/uploads/?digest=${digest}`, {
      method: "POST",
      body: content,
    });
    expect(await codeOf(answer)).toBe("413 SIZE_INVALID");
  });

  test("removes uploads that nobody goes on with", async () => {
    let now = 0;
    const clock = { now: () => now };
    const { url, dir } = await startRegistry({ clock, uploadExpiryMs: 1000 });
    const open = () => fetch(`${url}/v2/a/blobs/uploads/`, { method: "POST" });
    const first = (await open()).headers.get("location") ?? "";
    now = 1001;
    await open();
    expect((await fetch(url + first)).status).toBe(404);
    expect(readdirSync(join(dir, "scratch")).length).toBe(1);
  });

  test("has everything again after a restart", async () => {
    const before = await startRegistry();
    const config = await put(before.url, "a");
    const pushed = await putManifest(before.url, "a", "v1", { config, layers: [] });
    await fetch(`${before.url}/v2/a/blobs/uploads/`, { method: "POST" });
    const { url, dir } = await startRegistry({ dir: before.dir });
    expect(await (await fetch(`${url}/v2/a/manifests/v1`)).text()).toBe(pushed.body);
    expect(readdirSync(join(dir, "scratch"))).toEqual([]);
  });
});
