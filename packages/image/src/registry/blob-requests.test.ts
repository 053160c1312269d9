import { readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { digestOf } from "../index.ts";
import { startRegistry } from "../testing/registry.ts";
import { codeOf, content, digest, other, put } from "../testing/registry-requests.ts";

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
    const range = async () => (await fetch(new URL(location, url))).headers.get("range");
    await expect.poll(range).toBe("0-4");
    broken.destroy();
    const put = async () => {
      const to = new URL(`${location}?digest=${digest}`, url);
      return (await fetch(to, { method: "PUT", body: "56789" })).status;
    };
    // Until the registry has heard that the other request is over.
    let rest = await put();
    while (rest === 409) rest = await put();
    expect(rest).toBe(201);
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
