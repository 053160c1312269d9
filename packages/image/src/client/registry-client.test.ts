import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  assembleImage,
  createLayer,
  createRegistry,
  digestOf,
  mediaTypes,
  parseImageName,
  pushImage,
  RegistryClient,
  RegistryError,
} from "../index.ts";
import { startRegistry, temporaryDirectory } from "../testing/registry.ts";
import { type Answer, listen, registryBehind } from "../testing/registry-behind.ts";
import { retryAfterMs } from "./registry-connection.ts";

describe("a registry client", () => {
  test("tries again what may pass: no answer, 5xx, too many requests", async () => {
    const troubles: Answer[] = [
      (request) => void request.destroy(),
      (_request, response) => void response.writeHead(503).end("busy"),
      (_request, response) => void response.writeHead(429, { "retry-after": "0" }).end(),
    ];
    const host = await registryBehind((request, response) => {
      const trouble = troubles.shift();
      trouble?.(request, response);
      return trouble !== undefined;
    });
    expect(await new RegistryClient().headManifest(parseImageName(`${host}/a:1`))).toBeUndefined();
    expect(troubles).toEqual([]);
  });

  test("waits for a registry that restarts, and not for one that has never been there", async () => {
    const registry = createRegistry({ dir: temporaryDirectory() });
    onTestFinished(() => registry.close());
    let server = await listenAt(registry, 0);
    const { port } = server.address() as AddressInfo;
    const client = new RegistryClient({ attempts: 2, patienceMs: 30_000 });
    const name = parseImageName(`127.0.0.1:${port}/a:1`);
    expect(await client.headManifest(name)).toBeUndefined();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const asked = client.headManifest(name);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    server = await listenAt(registry, port);
    onTestFinished(() => void server.close());
    expect(await asked).toBeUndefined();
    const stranger = new RegistryClient({ attempts: 2, patienceMs: 30_000 });
    await expect(stranger.headManifest(parseImageName("127.0.0.1:1/a"))).rejects.toThrow("HEAD");
  });

  test("does not take a document for an image", async () => {
    const { host } = await startRegistry();
    const client = new RegistryClient();
    const name = parseImageName(`${host}/chart:1`);
    const content = Buffer.from("{}");
    const config = { mediaType: mediaTypes.config, digest: digestOf(content), size: 2 };
    await client.putBlob(name, config.digest, { size: 2, open: () => content });
    const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [] };
    await client.putManifest(name, Buffer.from(JSON.stringify(manifest)), mediaTypes.manifest);
    await expect(client.resolveImage(name)).rejects.toThrow(
      /chart:1 is not an image that can be run, but another kind of artifact/,
    );
  });

  test("sends a blob again from its start when the connection breaks", async () => {
    let broken = 0;
    const host = await registryBehind((request) => {
      if (request.method !== "PUT" || broken++ > 0) return false;
      request.once("data", () => request.destroy());
      return true;
    });
    const bytes = Buffer.alloc(2 * 1024 * 1024, "x");
    const name = parseImageName(`${host}/a:1`);
    const client = new RegistryClient();
    const open = async function* () {
      for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
    };
    await client.putBlob(name, digestOf(bytes), { size: bytes.length, open });
    expect(broken).toBe(2);
    expect(await client.hasBlob(name, digestOf(bytes))).toBe(true);
  });

  test("follows a blob to a storage service, and keeps its password to itself", async () => {
    let seen: string | undefined = "none";
    const storage = await listen((request, response) => {
      seen = request.headers.authorization;
      response.end("content");
    });
    const host = await listen((request, response) => {
      expect(request.headers.authorization).toBeTruthy();
      response.writeHead(307, { location: `http://${storage}/somewhere?signature=1` }).end();
    });
    const client = new RegistryClient({
      credentials: () => ({ username: "me", password: "secret" }),
    });
    const blob = { digest: digestOf("content"), size: 7 };
    const content = await client.readBlob(parseImageName(`${host}/a`), blob, { limit: 100 });
    expect([content.toString(), seen]).toEqual(["content", undefined]);
  });

  test("does not take content for what it is not", async () => {
    const host = await listen((request, response) => {
      response.end(
        request.url?.includes("blobs") ? "contenu" : '{"schemaVersion":2,"manifests":[]}',
      );
    });
    const client = new RegistryClient();
    const name = parseImageName(`${host}/a`);
    const read = (blob: string, size: number) =>
      client.readBlob(name, { digest: digestOf(blob), size }, { limit: 100 });
    await expect(read("content", 7)).rejects.toThrow(/the content has digest sha256:/);
    await expect(read("contenu", 5)).rejects.toThrow(/more than the announced 5 bytes/);
    await expect(read("contenu", 9)).rejects.toThrow(/7 bytes instead of 9/);
    await expect(read("contenu", 900)).rejects.toThrow(/more than the 100 taken/);
    await expect(client.getManifest({ ...name, digest: digestOf("other") })).rejects.toThrow(
      /another manifest/,
    );
  });

  test("takes the image of its platform out of an index", async () => {
    const { host, url } = await startRegistry();
    const client = new RegistryClient();
    const manifests = [];
    for (const architecture of ["amd64", "arm64"]) {
      const platform = { os: "linux", architecture };
      const image = assembleImage({
        layers: [await createLayer([{ path: architecture, content: "" }])],
        platform,
      });
      await pushImage(client, image, parseImageName(`${host}/a:${architecture}`));
      manifests.push({
        mediaType: mediaTypes.manifest,
        digest: image.digest,
        size: image.bytes.length,
        platform,
      });
    }
    const index = JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests });
    const stored = await fetch(`${url}/v2/a/manifests/all`, {
      method: "PUT",
      headers: { "content-type": mediaTypes.index },
      body: index,
    });
    expect(stored.status).toBe(201);
    const resolve = (architecture: string) =>
      client.resolveImage(`${host}/a:all`, { platform: { os: "linux", architecture } });
    expect((await resolve("arm64")).config.architecture).toBe("arm64");
    expect((await resolve("amd64")).config.architecture).toBe("amd64");
    await expect(resolve("riscv64")).rejects.toThrow(
      "no image for linux/riscv64; available: linux/amd64, linux/arm64",
    );
  });

  test("says what was asked, what came back, and no password", async () => {
    const { host } = await startRegistry({ credentials: { username: "u", password: "right" } });
    const client = new RegistryClient({
      credentials: () => ({ username: "u", password: "wrong" }),
    });
    const failure = await client.resolveImage(`${host}/a:1`).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RegistryError);
    expect((failure as Error).message).toBe(
      `GET http://${host}/v2/a/manifests/1: 401 UNAUTHORIZED: authentication required`,
    );
    const nobody = await new RegistryClient({ attempts: 1 })
      .resolveImage("127.0.0.1:1/a")
      .catch((error: unknown) => error);
    expect(nobody).toMatchObject({
      status: 0,
      message: "GET http://127.0.0.1:1/v2/a/manifests/latest",
    });
  });
});

async function listenAt(registry: ReturnType<typeof createRegistry>, port: number) {
  const server: Server = createServer((request, response) => {
    void registry.handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return server;
}

test.each([
  ["5", 5_000],
  ["Wed, 21 Oct 2015 07:28:00 GMT", 60_000],
  ["Wed, 21 Oct 2015 07:26:00 GMT", undefined],
  ["0", undefined],
  ["soon", undefined],
  [undefined, undefined],
])("Retry-After: %s asks to wait %s ms", (header, expected) => {
  expect(retryAfterMs(header, Date.parse("2015-10-21T07:27:00Z"))).toBe(expected);
});
