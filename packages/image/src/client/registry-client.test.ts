import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  assembleImage,
  createLayer,
  createRegistry,
  digestOf,
  formatImageName,
  mediaTypes,
  parseImageName,
  pushImage,
  readDockerConfig,
  RegistryClient,
  RegistryError,
} from "../index.ts";
import { startRegistry, temporaryDirectory } from "../testing/registry.ts";
import { parseChallenge } from "./authorization.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(answer: Answer): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A real registry, behind something that may answer instead of it. */
async function registryBehind(
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean,
) {
  const registry = createRegistry({ dir: temporaryDirectory() });
  onTestFinished(() => registry.close());
  return listen((request, response) => {
    if (!intercept(request, response)) void registry.handle(request, response);
  });
}

const names: { text: string; name?: object; formatted?: string; why?: RegExp }[] = [
  { text: "alpine", name: { host: "docker.io", repository: "library/alpine", tag: "latest" } },
  { text: "kyma/fn:1", name: { host: "docker.io", repository: "kyma/fn", tag: "1" } },
  { text: "localhost/a", name: { host: "localhost", repository: "a", tag: "latest" } },
  {
    text: "registry.spry.localhost:5000/a/b-c__d:v1.2",
    name: { host: "registry.spry.localhost:5000", repository: "a/b-c__d", tag: "v1.2" },
  },
  {
    text: `r.io/a:1@${digestOf("")}`,
    name: { host: "r.io", repository: "a", tag: "1", digest: digestOf("") },
  },
  { text: `r.io/a@${digestOf("")}`, name: { host: "r.io", repository: "a", digest: digestOf("") } },
  { text: "r.io/A", why: /a repository has lower case/ },
  { text: "r.io/a/../b", why: /a repository has lower case/ },
  { text: "r.io/a:", why: /no tag/ },
  { text: "r.io/a@sha256:1", why: /reading digest/ },
  { text: "r.io/a@b@c", why: /more than one @/ },
  { text: "", why: /a repository has lower case/ },
  { text: "a".repeat(600), why: /longer than 512/ },
  { text: "ev:il@host/a", why: /reading/ },
];

describe("an image name", () => {
  test.each(names)("is read or refused: $text", ({ text, name, why }) => {
    if (why) return expect(() => parseImageName(text)).toThrow(why);
    expect(parseImageName(text)).toEqual(name);
    expect(parseImageName(formatImageName(parseImageName(text)))).toEqual(name);
  });
});

describe("a registry client", () => {
  test("gets a token when it is asked for one, once per scope", async () => {
    const asked: string[] = [];
    const host = await registryBehind((request, response) => {
      const url = new URL(request.url ?? "", "http://x");
      if (url.pathname === "/token") {
        expect(request.headers.authorization).toBe(
          `Basic ${Buffer.from("me:secret").toString("base64")}`,
        );
        asked.push(url.searchParams.getAll("scope").join(" "));
        response.end(JSON.stringify({ token: `for ${asked.at(-1)}`, expires_in: 300 }));
        return true;
      }
      if (request.headers.authorization?.startsWith("Bearer for repository:a")) return false;
      const challenge = `Bearer realm="http://${request.headers.host}/token",service="registry",scope="x"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return true;
    });
    const client = new RegistryClient({
      credentials: () => ({ username: "me", password: "secret" }),
    });
    const image = assembleImage({ layers: [await createLayer([{ path: "a", content: "1" }])] });
    const name = parseImageName(`${host}/a:1`);
    await pushImage(client, image, name);
    expect((await client.resolveImage(name)).digest).toBe(image.digest);
    expect(new Set(asked)).toEqual(new Set(["repository:a:pull", "repository:a:pull,push"]));
  });

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
      "no image for linux/riscv64; there is linux/amd64, linux/arm64",
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

describe("an upload that breaks", () => {
  const large = Buffer.alloc(9 * 1024 * 1024, "0123456789");
  const pieces = async function* () {
    for (let at = 0; at < large.length; at += 65_536)
      yield await Promise.resolve(large.subarray(at, at + 65_536));
  };

  test("goes on where it broke", async () => {
    const methods: string[] = [];
    let breaks = 2;
    let received = 0;
    const host = await registryBehind((request) => {
      methods.push(`${request.method} ${request.headers["content-range"] ?? ""}`.trim());
      if (request.method !== "PATCH") return false;
      const { socket } = request;
      const before = socket.bytesRead;
      const look = setInterval(() => {
        if (breaks === 0 || socket.bytesRead - before < 3_000_000) return;
        breaks--;
        socket.destroy();
      }, 0);
      socket.once("close", () => {
        received += socket.bytesRead;
        clearInterval(look);
      });
      request.once("end", () => clearInterval(look));
      return false;
    });
    const name = parseImageName(`${host}/a`);
    const client = new RegistryClient();
    await client.putBlob(name, digestOf(large), { size: large.length, open: pieces });
    expect(await client.hasBlob(name, digestOf(large))).toBe(true);
    expect(methods.filter((each) => each.startsWith("POST"))).toHaveLength(1);
    const starts = methods
      .filter((each) => each.startsWith("PATCH"))
      .map((each) => Number(/(\d+)-/.exec(each)?.[1]));
    expect(starts).toHaveLength(3);
    expect(starts[1]).toBeGreaterThan(0);
    expect(starts[2]).toBeGreaterThan(starts[1] ?? 0);
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(large.length * 1.5);
  });

  test("begins anew when the registry has forgotten it", async () => {
    let patches = 0;
    const host = await registryBehind((request, response) => {
      if (request.method === "PATCH" && ++patches === 1) {
        request.destroy();
        return true;
      }
      if (request.method === "GET" && request.url?.includes("/uploads/")) {
        response.writeHead(404).end();
        return true;
      }
      return false;
    });
    const name = parseImageName(`${host}/a`);
    const client = new RegistryClient();
    await client.putBlob(name, digestOf(large), { size: large.length, open: () => large });
    expect(await client.hasBlob(name, digestOf(large))).toBe(true);
  });
});

describe("registry credentials", () => {
  test("come from a docker configuration, in every form it has", async () => {
    const dir = temporaryDirectory();
    mkdirSync(dir, { recursive: true });
    const auths = {
      "a.io:5000": { auth: Buffer.from("u:p:q").toString("base64") },
      "https://b.io/v2/": { username: "u", password: "p" },
      "https://index.docker.io/v1/": { auth: Buffer.from("hub:p").toString("base64") },
      "c.io": {},
    };
    writeFileSync(join(dir, "config.json"), JSON.stringify({ auths }));
    const credentials = readDockerConfig(dir);
    expect(await credentials("a.io:5000")).toEqual({ username: "u", password: "p:q" });
    expect(await credentials("b.io")).toEqual({ username: "u", password: "p" });
    expect(await credentials("docker.io")).toEqual({ username: "hub", password: "p" });
    expect(await credentials("c.io")).toBeUndefined();
    expect(await readDockerConfig(join(dir, "none"))("a.io:5000")).toBeUndefined();
    writeFileSync(join(dir, "config.json"), '{"auths": secret');
    expect(() => readDockerConfig(dir)).toThrow(/config\.json: no JSON$/);
  });

  test("come from the helpers that the configuration names", async () => {
    const dir = temporaryDirectory();
    const helper = (name: string, script: string) =>
      writeFileSync(join(dir, `docker-credential-${name}`), `#!/bin/sh\n${script}\n`, {
        mode: 0o755,
      });
    helper(
      "store",
      'read host; echo asked >> "$0.log"; echo "{\\"Username\\":\\"u\\",\\"Secret\\":\\"for $host\\"}"',
    );
    helper("empty", "echo credentials not found in native keychain; exit 1");
    helper("broken", "echo secret-token; exit 0");
    const { PATH } = process.env;
    process.env["PATH"] = `${dir}:${PATH}`;
    onTestFinished(() => void (process.env["PATH"] = PATH));
    const config = {
      auths: { "https://a.io/v1/": {} },
      credsStore: "store",
      credHelpers: { "b.io": "empty", "c.io": "missing", "d.io": "../sh", "e.io": "broken" },
    };
    writeFileSync(join(dir, "config.json"), JSON.stringify(config));
    const credentials = readDockerConfig(dir);
    const known = { username: "u", password: "for https://a.io/v1/" };
    expect(await credentials("a.io")).toEqual(known);
    expect(await credentials("a.io")).toEqual(known);
    expect(readFileSync(join(dir, "docker-credential-store.log"), "utf8")).toBe("asked\n");
    expect(await credentials("other.io")).toEqual({ username: "u", password: "for other.io" });
    expect(await credentials("b.io")).toBeUndefined();
    await expect(credentials("c.io")).rejects.toThrow(/no such program on the PATH/);
    await expect(credentials("d.io")).rejects.toThrow(/a credential helper's name/);
    const failure: unknown = await credentials("e.io").catch((error: unknown) => error);
    expect(String(failure)).toMatch(/the answer has no Username and Secret$/);
  });

  test("are asked for by a challenge that is read leniently", () => {
    const parameters = { realm: "https://r.io/token", service: "r.io" };
    expect(parseChallenge('Bearer realm="https://r.io/token",service="r.io"')).toEqual({
      scheme: "bearer",
      parameters,
    });
    expect(parseChallenge("bearer realm=https://r.io/token, service=r.io")).toEqual({
      scheme: "bearer",
      parameters,
    });
    expect(parseChallenge("Negotiate")).toBeUndefined();
  });
});
