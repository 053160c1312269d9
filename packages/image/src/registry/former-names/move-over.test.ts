import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startRegistry, temporaryDirectory } from "../../testing/registry.ts";
import { put, putManifest } from "../../testing/registry-requests.ts";
import { createLogins, type Login } from "../access/logins.ts";
import { type FormerUses } from "./move-over.ts";

const logins = createLogins("k".repeat(64));
const of = (namespace: string) => logins.namespace({ namespace, uid: namespace });
const key = (digit: string) => digit.repeat(64);

/** What an earlier version left, served by this one; `pushed` are the digests. */
async function former() {
  const dir = temporaryDirectory();
  const before = await startRegistry({ dir });
  const push = async (repository: string, tag: string, layer: string, subject?: object) => {
    const config = await put(before.url, repository, Buffer.from(`config of ${layer}`));
    const layers = [await put(before.url, repository, Buffer.from(layer))];
    const manifest = { config, layers, ...(subject ? { subject } : {}) };
    return (await putManifest(before.url, repository, tag, manifest)).digest;
  };
  const pushed = {
    hello: await push("shop-hello", key("1"), "hello"),
    one: await push("a-b-c", key("2"), "a-b's c"),
    other: await push("a-b-c", key("3"), "a's b-c"),
    gone: await push("shop-gone", key("4"), "gone"),
  };
  await push("spry-cache/nodejs24", "used", "hello");
  await push("spry-cache/nodejs24", "poison", "nobody's");
  await push("shop/dependencies.cache/nodejs24", "planted", "poison");
  await push("spry/nodejs24", "1", "runtime");
  await push("my/own", "v1", "own");
  const uses: FormerUses = {
    functions: [
      { namespace: "shop", name: "hello" },
      { namespace: "a-b", name: "c" },
      { namespace: "a", name: "b-c" },
    ],
    references: [
      { namespace: "shop", reference: `shop-hello@${pushed.hello}` },
      { namespace: "a-b", reference: `a-b-c@${pushed.one}` },
      { namespace: "a", reference: `a-b-c@${pushed.other}` },
      // What is named is not thereby had: this image is nobody's but the shop's.
      { namespace: "a", reference: `shop-hello@${pushed.hello}` },
    ],
  };
  const { registry, url } = await startRegistry({ dir, logins });
  const status = async (login: Login, path: string) => {
    const { username, password } = login;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    return (await fetch(`${url}/v2/${path}`, { headers: { authorization } })).status;
  };
  return { dir, registry, pushed, uses, status };
}

test("each namespace gets what was its own, by the former name and by today's", async () => {
  const { registry, pushed, uses, status } = await former();
  expect(await registry.moveOver(() => Promise.resolve(uses))).toBe(2);
  const table: [login: Login, path: string, status: number][] = [
    [of("shop"), `shop/hello/manifests/${pushed.hello}`, 200],
    [of("shop"), `shop-hello/manifests/${pushed.hello}`, 200],
    [of("shop"), `shop/hello/manifests/${key("1")}`, 200],
    [of("a"), `shop-hello/manifests/${pushed.hello}`, 403],
    [of("a-b"), `a-b/c/manifests/${pushed.one}`, 200],
    [of("a-b"), `a-b-c/manifests/${pushed.one}`, 200],
    [of("a-b"), `a-b-c/manifests/${pushed.other}`, 404],
    [of("a"), `a-b-c/manifests/${pushed.other}`, 200],
    [of("a"), `a-b-c/manifests/${pushed.one}`, 404],
    [of("a"), `a/b-c/manifests/${pushed.other}`, 200],
    [of("shop"), "shop/dependencies.cache/nodejs24/manifests/used", 200],
    [of("shop"), "shop/dependencies.cache/nodejs24/manifests/poison", 404],
    [of("shop"), "shop/dependencies.cache/nodejs24/manifests/planted", 404],
    [of("a"), "a/dependencies.cache/nodejs24/manifests/used", 404],
    [of("a"), "spry-cache/nodejs24/manifests/used", 403],
    [logins.platform(), "spry-cache/nodejs24/manifests/used", 404],
    [of("a"), "spry/nodejs24/manifests/1", 200],
    [of("my"), "my/own/manifests/v1", 200],
    [logins.platform(), `shop-gone/manifests/${pushed.gone}`, 200],
  ];
  for (const [login, path, expected] of table)
    expect(`${login.username} ${path} ${await status(login, path)}`).toBe(
      `${login.username} ${path} ${expected}`,
    );
});

test("it is done once, and nobody is asked where there is nothing", async () => {
  const never = () => Promise.reject(new Error("asked"));
  const { registry } = await startRegistry();
  expect(await registry.moveOver(never)).toBe(0);
  const { registry: moved, uses } = await former();
  await moved.moveOver(() => Promise.resolve(uses));
  expect(await moved.moveOver(never)).toBe(0);
});

test("a move that was cut short goes on", async () => {
  const { registry, dir, pushed, uses, status } = await former();
  await expect(registry.moveOver(() => Promise.reject(new Error("no API server")))).rejects.toThrow(
    "no API server",
  );
  // Killed when the first of a repository's directories had its new place.
  const at = (...parts: string[]) => join(dir, "repositories", ...parts);
  mkdirSync(at("shop/hello/_blobs"), { recursive: true });
  writeFileSync(at("shop/hello/_blobs", key("5")), "");
  await registry.moveOver(() => Promise.resolve(uses));
  expect(await status(of("shop"), `shop-hello/manifests/${pushed.hello}`)).toBe(200);
});

test("a former name keeps its image in the registry as long as something uses it", async () => {
  const { registry, pushed, uses, status } = await former();
  await registry.moveOver(() => Promise.resolve(uses));
  const references = [`shop-hello@${pushed.hello}`];
  const path = `shop-hello/manifests/${pushed.hello}`;
  await registry.clean({ references, functions: ["shop/hello"] });
  expect(await status(of("shop"), path)).toBe(200);
  await registry.clean({ references: [], functions: ["shop/hello"] });
  expect(await status(of("shop"), path)).toBe(403);
});
