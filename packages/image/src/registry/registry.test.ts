import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startRegistry } from "../testing/registry.ts";
import { codeOf, content, digest, other, put, putManifest } from "../testing/registry-requests.ts";

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
    { path: "//", why: "404 UNSUPPORTED" },
    { path: "//v2/", why: "404 UNSUPPORTED" },
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
    const clock = { now: () => now, elapsed: () => now };
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
