/** Who may use an image that is on the machine: those to whom a registry has given it. */
import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import {
  assembleImage,
  createLayer,
  createLogins,
  createRegistry,
  type Login,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { ManualClock, OutboundGuard, silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { ImageStore, type Puller } from "./images.ts";

const host = "registry.spry.localhost";
const logins = createLogins("k".repeat(64));
const shop = logins.namespace({ namespace: "shop", uid: "shop" });
const bank = logins.namespace({ namespace: "bank", uid: "bank" });

/** A registry with the images of two namespaces and the platform's, and a machine's store. */
async function start() {
  const registry = createRegistry({ dir: temporaryDirectory(), logins });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await server.close();
    isOpen = false;
  };
  onTestFinished(async () => {
    await close();
    await registry.close();
  });
  const url = `http://127.0.0.1:${server.port}`;
  const push = async (repository: string, text: string, at = url) => {
    const platform = at === url ? logins.platform() : {};
    const client = new RegistryClient({ resolve: () => ({ url: at, ...platform }) });
    const layer = await createLayer([{ path: "app", content: Buffer.from(text) }]);
    const target = parseImageName(`${host}/${repository}:1`);
    const { digest } = await pushImage(client, assembleImage({ layers: [layer] }), target);
    return `${host}/${repository}@${digest}`;
  };
  const dir = temporaryDirectory();
  const open = async (pinned?: ReadonlyMap<string, string>) => {
    const mirrors = { [host]: { url, ...logins.node() } };
    const store = new ImageStore({
      dir,
      mirrors,
      guard: new OutboundGuard({ allowPrivate: true, allowLoopback: true }),
      pinned,
      clock: new ManualClock(),
      log: silentLogger,
    });
    await store.open();
    return store;
  };
  return { push, open, dir, close, store: await open() };
}

const by = (namespaceUid: string, login?: Login): Puller => ({
  namespaceUid,
  credentials: login && { missing: [], find: () => login },
});

test("an image that one namespace has pulled is not another's to use, nor anyone's without a login", async () => {
  const { push, store } = await start();
  const vault = await push("bank/vault", "of the bank");
  const image = await store.pull(vault, by("bank", bank));
  expect(store.mayUse(image, "bank")).toBe(true);
  expect(store.mayUse(image, "shop")).toBe(false);
  await expect(store.pull(vault, by("shop", shop))).rejects.toThrow("DENIED");
  await expect(store.pull(vault, by("shop"))).rejects.toThrow("the login of the node may not pull");
  expect(store.mayUse(image, "shop")).toBe(false);
});

test("who has pulled an image uses it again after a restart, with the registry down", async () => {
  const { push, store, open, close } = await start();
  const vault = await push("bank/vault", "of the bank");
  await store.pull(vault, by("bank", bank));
  await close();
  const later = await open();
  const image = later.find(vault);
  expect(image && [later.mayUse(image, "bank"), later.mayUse(image, "shop")]).toEqual([
    true,
    false,
  ]);
});

test("what the platform has made is everyone's", async () => {
  const { push, store, open } = await start();
  const image = await store.pull(await push("spry/nodejs24", "runtime"), by("shop"));
  expect(store.mayUse(image, "bank")).toBe(true);
  expect((await open()).mayUse(image, "bank")).toBe(true);
});

test("the same image of two namespaces is unpacked once, and each has to ask for its own", async () => {
  const { push, store } = await start();
  const [one, other] = [await push("bank/vault", "the same"), await push("shop/vault", "the same")];
  const image = await store.pull(one, by("bank", bank));
  expect(store.mayUse(image, "shop")).toBe(false);
  expect((await store.pull(other, by("shop", shop))).rootDir).toBe(image.rootDir);
  expect(store.mayUse(image, "shop")).toBe(true);
  expect(store.mayUse(image, "bank")).toBe(true);
});

test("two namespaces that pull one image at the same moment both have it", async () => {
  const { push, store } = await start();
  const names = [await push("bank/vault", "at once"), await push("shop/vault", "at once")];
  const [image] = await Promise.all([
    store.pull(names[0] ?? "", by("bank", bank)),
    store.pull(names[1] ?? "", by("shop", shop)),
  ]);
  expect(image && ["bank", "shop"].map((uid) => store.mayUse(image, uid))).toEqual([true, true]);
});

test("an image of an earlier version is not used before the registry has been asked", async () => {
  const { push, store, open, dir } = await start();
  const name = await push("bank/vault", "of before");
  const image = await store.pull(name, by("bank", bank));
  const record = path.join(path.dirname(image.rootDir), "pulled-by.json");
  expect(existsSync(record) && record.startsWith(dir)).toBe(true);
  rmSync(record);
  const later = await open();
  expect(["bank", "shop"].filter((uid) => later.mayUse(image, uid))).toEqual([]);
  await expect(later.pull(name, by("shop", shop))).rejects.toThrow("DENIED");
  expect((await later.pull(name, by("bank", bank))).rootDir).toBe(image.rootDir);
  expect(["bank", "shop"].filter((uid) => later.mayUse(image, uid))).toEqual(["bank"]);
});

test("a tag that the platform knows the digest of is no other image, whatever was pulled by it before", async () => {
  const { push, store, open } = await start();
  const planted = await push("spry/builder", "planted");
  const tag = `${host}/spry/builder:1`;
  await store.pull(tag, by("shop"));
  expect(store.find(tag)?.digest).toBe(planted.split("@")[1]);
  const digest = (await push("spry/builder", "the platform's")).split("@")[1] ?? "";
  const later = await open(new Map([[tag, digest]]));
  expect(later.find(tag)).toBeUndefined();
  await later.pull(tag, by("shop"));
  expect(later.find(tag)?.digest).toBe(digest);
});

/** A registry elsewhere that takes any manifest, and gives a repository's layers to clients that may read that repository. */
test.each(["the layers below", "the whole image"])(
  "in another registry, naming %s of another's repository is not enough to get them",
  async (what) => {
    const { store } = await start();
    const elsewhere = createRegistry({ dir: temporaryDirectory() });
    onTestFinished(() => elsewhere.close());
    const server = await elsewhere.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => server.close());
    const at = `127.0.0.1:${server.port}`;
    const client = new RegistryClient();
    const large = Buffer.from(randomBytes(300_000).toString("hex"));
    const secret = await createLayer([{ path: "secret", content: large }]);
    const own = async (text: string) => createLayer([{ path: "app", content: Buffer.from(text) }]);
    const push = async (repository: string, text: string) => {
      const image = assembleImage({ layers: [secret, await own(text)] });
      const { digest } = await pushImage(client, image, parseImageName(`${at}/${repository}:1`));
      return `${at}/${repository}@${digest}`;
    };
    const theirs = await store.pull(await push("bank/vault", "bank"), by("bank", bank));
    const named = await push("evil/vault", what === "the whole image" ? "bank" : "evil");
    // As if the manifest had been taken without its layer.
    const layer = secret.descriptor.digest;
    await fetch(`http://${at}/v2/evil/vault/blobs/${layer}`, { method: "DELETE" });
    await expect(store.pull(named, by("evil", shop))).rejects.toThrow(
      "does not give every layer of evil/vault",
    );
    expect(store.mayUse(theirs, "evil")).toBe(false);
  },
);

test("a registry that only says that it has an image has to show it", async () => {
  const { push, store } = await start();
  const vault = await push("bank/vault", "of the bank");
  const image = await store.pull(vault, by("bank", bank));
  // It has learnt the manifest and the configuration, and not the layer.
  const evil = createRegistry({ dir: temporaryDirectory() });
  onTestFinished(() => evil.close());
  const server = await evil.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  const name = `127.0.0.1:${server.port}/evil/vault`;
  await push("evil/vault", "of the bank", `http://127.0.0.1:${server.port}`);
  const there = new RegistryClient();
  const { manifest } = await there.resolveImage(`${name}:1`);
  const layer = manifest.layers[0]?.digest;
  await fetch(`http://127.0.0.1:${server.port}/v2/evil/vault/blobs/${layer}`, { method: "DELETE" });
  await expect(store.pull(`${name}@${image.digest}`, by("evil"))).rejects.toThrow("BLOB_UNKNOWN");
  expect(store.mayUse(image, "evil")).toBe(false);
});
