import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { startRegistry } from "../testing/registry.ts";
import { codeOf, putManifest } from "../testing/registry-requests.ts";
import { hour, key, oldRegistry } from "../testing/old-registry.ts";

describe("a registry's quota", () => {
  const quota = { quotaBytes: 10_000 };

  test("refuses what would exceed it, in words, and says that it is time to clean", async () => {
    let pressure = 0;
    const { putBlob, registry, elapse } = await oldRegistry({
      ...quota,
      onPressure: () => pressure++,
    });
    expect((await putBlob("ns-fn", "a".repeat(7000))).answer.status).toBe(201);
    expect(pressure).toBe(0);
    const { answer } = await putBlob("ns-fn", "b".repeat(4000));
    expect(answer.status).toBe(403);
    const { errors } = (await answer.json()) as { errors: { code: string; message: string }[] };
    expect(errors[0]?.code).toBe("DENIED");
    expect(errors[0]?.message).toMatch(/^the registry is full: .* delete Functions/);
    expect(pressure).toBe(1);
    elapse(hour);
    await registry.clean({ references: [], functions: [] });
    expect((await putBlob("ns-fn", "b".repeat(4000))).answer.status).toBe(201);
  });

  test("counts again after a restart", async () => {
    const before = await oldRegistry(quota);
    await before.putBlob("ns-fn", "a".repeat(7000));
    const { url } = await startRegistry({ dir: before.dir, ...quota });
    await expect
      .poll(async () => (await fetch(`${url}/metrics`)).text())
      .toContain("spry_registry_storage_bytes 7000");
  });

  test("a broken upload gives back what it held", async () => {
    const { url, putBlob } = await oldRegistry(quota);
    const opened = await fetch(`${url}/v2/a/blobs/uploads/`, { method: "POST" });
    const upload = url + (opened.headers.get("location") ?? "");
    await fetch(upload, { method: "PATCH", body: "a".repeat(9000) });
    expect((await putBlob("a", "b".repeat(2000))).answer.status).toBe(403);
    await fetch(upload, { method: "DELETE" });
    expect((await putBlob("a", "b".repeat(2000))).answer.status).toBe(201);
  });

  test("an upload that is cancelled while it is sent holds nothing afterwards", async () => {
    const { url, putBlob } = await oldRegistry(quota);
    const opened = await fetch(`${url}/v2/a/blobs/uploads/`, { method: "POST" });
    const upload = url + (opened.headers.get("location") ?? "");
    const sending = request(upload, { method: "PATCH" });
    const status = new Promise<number | undefined>((resolve, reject) => {
      sending.on("response", (answer) => resolve(answer.resume().statusCode));
      sending.on("error", reject);
    });
    sending.write("a".repeat(4000));
    await expect.poll(async () => (await fetch(upload)).headers.get("range")).toBe("0-3999");
    expect((await fetch(upload, { method: "DELETE" })).status).toBe(204);
    sending.end("a".repeat(5000));
    expect(await status).toBe(404);
    expect((await putBlob("a", "b".repeat(9000))).answer.status).toBe(201);
  });

  test("counts manifests, and leaves the way to delete them open when it is full", async () => {
    const { url, putBlob, registry, elapse } = await oldRegistry(quota);
    const { descriptor: config } = await putBlob("a/b", "c".repeat(7000));
    const push = (tag: string, length: number) =>
      putManifest(url, "a/b", tag, {
        config,
        layers: [],
        annotations: { filler: "x".repeat(length) },
      });
    const first = await push("v1", 2000);
    expect(first.answer.status).toBe(201);
    expect(await codeOf((await push("v2", 3000)).answer)).toBe("403 DENIED");
    // What is there already takes no room.
    expect((await push("v3", 2000)).answer.status).toBe(201);
    const path = `${url}/v2/a/b/manifests/${first.digest}`;
    expect((await fetch(path, { method: "DELETE" })).status).toBe(202);
    elapse(hour);
    expect(await registry.clean({ references: [], functions: [] })).toMatchObject({ blobs: 2 });
    expect((await putBlob("a/b", "d".repeat(9000))).answer.status).toBe(201);
  });

  test("takes dispensable images only for room, those first that are longest unused", async () => {
    const { registry, putImage, tagsOf } = await oldRegistry(quota);
    for (const [n, letter] of ["a", "b", "c"].entries())
      await putImage("ns-fn", key(n + 1), letter.repeat(1000));
    await putImage("shop/dependencies.cache/nodejs24", "dependencies", "d".repeat(1000));
    const inUse = { references: [], functions: ["ns-fn"] };
    expect(await registry.clean(inUse)).toMatchObject({ manifests: 0 });
    await putImage("my/base", "v1", "e".repeat(3000));
    await registry.clean(inUse);
    expect(await tagsOf("ns-fn")).toEqual([key(2), key(3)]);
    expect(await tagsOf("shop/dependencies.cache/nodejs24")).toEqual(["dependencies"]);
  });
});
