import { randomBytes } from "node:crypto";
import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { ManualClock, silentLogger } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { registryHost, startRegistry, temporaryDirectory } from "../testing.ts";
import { type LocalImage } from "../sandbox/sandbox.ts";
import { ImageStore } from "./images.ts";

/** Of the disk. */
const disk = 1024 ** 4;
const uses = ({ inUse = [], named = [] }: { inUse?: string[]; named?: string[] } = {}) => ({
  inUse: new Set(inUse),
  named: new Set(named),
});
const someone = { namespaceUid: "someone" };
const dependencies = { "app/node_modules/big/data": randomBytes(400_000).toString("base64") };

async function openStore(dir = temporaryDirectory()) {
  const registry = await startRegistry();
  const clock = new ManualClock();
  const store = new ImageStore({ dir, mirrors: registry.mirrors, clock, log: silentLogger });
  await store.open();
  return { dir, registry, clock, store };
}

test("an image is found again by name and by digest, also after a restart", async () => {
  const { dir, registry, store, clock } = await openStore();
  const pinned = await registry.push("app:1", { "app/main.cjs": "1" }, { WorkingDir: "/app" });
  const tagged = `${registryHost}/app:1`;
  expect(store.find(tagged)).toBeUndefined();
  const [image, same] = await Promise.all([
    store.pull(tagged, someone),
    store.pull(tagged, someone),
  ]);
  expect(same).toBe(image);
  expect(store.find(pinned)).toBe(image);
  expect(readFileSync(path.join(image.rootDir, "app/main.cjs"), "utf8")).toBe("1");
  const later = new ImageStore({ dir, mirrors: {}, clock, log: silentLogger });
  await later.open();
  expect(later.find(tagged)).toMatchObject({
    digest: image.digest,
    config: { WorkingDir: "/app" },
  });
});

test.each<[string, (file: string) => void]>([
  ["shortened", (file) => truncateSync(file, 10)],
  ["removed", (file) => rmSync(file)],
])(
  "an image of which a file was %s is not used after a restart, but fetched again",
  async (_, harm) => {
    const { dir, registry, store, clock } = await openStore();
    const layers = [dependencies, { "app/main.cjs": "module.exports = 1;" }];
    const name = await registry.push("app:1", layers);
    const other = await registry.push("other:1", [dependencies, { "app/main.cjs": "2" }]);
    const { rootDir } = await store.pull(name, someone);
    await store.pull(other, someone);
    for (const file of ["app/main.cjs", "app/node_modules/big/data"]) {
      const content = readFileSync(path.join(rootDir, file), "utf8");
      harm(path.join(rootDir, file));
      const later = new ImageStore({ dir, mirrors: registry.mirrors, clock, log: silentLogger });
      await later.open();
      expect(later.find(name)).toBeUndefined();
      expect((await later.pull(name, someone)).rootDir).toBe(rootDir);
      expect(readFileSync(path.join(rootDir, file), "utf8")).toBe(content);
      expect(later.find(name)).toBeDefined();
    }
    // What a container has left in an image does not make it another.
    writeFileSync(path.join(rootDir, "app/more"), "");
    const last = new ImageStore({ dir, mirrors: {}, clock, log: silentLogger });
    await last.open();
    expect(last.find(name)).toBeDefined();
  },
);

test("the files of an image with very many are looked at after a restart, too, while others go on", async () => {
  const { dir, registry, store, clock } = await openStore();
  const many = Object.fromEntries(
    Array.from({ length: 20_500 }, (_, i) => [`app/${Math.floor(i / 500)}/${i}`, "x"]),
  );
  const name = await registry.push("many:1", many);
  const { rootDir } = await store.pull(name, someone);
  const restarted = async () => {
    const later = new ImageStore({ dir, mirrors: registry.mirrors, clock, log: silentLogger });
    await later.open();
    return later;
  };
  const whole = await restarted();
  expect(whole.find(name)).toBeUndefined();
  await whole.check(name);
  expect(whole.find(name)).toBeDefined();
  truncateSync(path.join(rootDir, "app/40/20499"), 0);
  const later = await restarted();
  await later.check(name);
  expect(later.find(name)).toBeUndefined();
  expect((await later.pull(name, someone)).rootDir).toBe(rootDir);
  expect(readFileSync(path.join(rootDir, "app/40/20499"), "utf8")).toBe("x");
});

test("all files of an image are on its list, also those that it shares with the version before", async () => {
  const { dir, registry, store, clock } = await openStore();
  const assets = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`app/${index}`, randomBytes(4000).toString("hex")]),
  );
  const pull = async (text: string) => {
    const layers = [dependencies, { ...assets, "app/main.cjs": text }];
    const name = await registry.push(`app:${text}`, layers);
    return { name, rootDir: (await store.pull(name, someone)).rootDir };
  };
  await pull("one");
  const { name, rootDir } = await pull("other");
  const sizes = { ...assets, ...dependencies, "app/main.cjs": "other" };
  const list = readFileSync(path.join(path.dirname(rootDir), "files.json"), "utf8");
  expect(JSON.parse(list)).toEqual(
    Object.fromEntries(Object.entries(sizes).map(([file, { length }]) => [file, length])),
  );
  truncateSync(path.join(rootDir, "app/7"), 10);
  const later = new ImageStore({ dir, mirrors: registry.mirrors, clock, log: silentLogger });
  await later.open();
  expect(later.find(name)).toBeUndefined();
  expect(readFileSync(path.join((await later.pull(name, someone)).rootDir, "app/7"), "utf8")).toBe(
    assets["app/7"],
  );
});

test("an image that is pulled under many names at once is there under each", async () => {
  const { registry, store } = await openStore();
  const names = Array.from({ length: 8 }, (_, number) => `app-${number}:1`);
  for (const name of names) await registry.push(name, { "app/main.cjs": "1" });
  const images = await Promise.all(
    names.map((name) => store.pull(`${registryHost}/${name}`, someone)),
  );
  expect(new Set(images.map(({ digest }) => digest)).size).toBe(1);
  for (const { rootDir } of images)
    expect(readFileSync(path.join(rootDir, "app/main.cjs"), "utf8")).toBe("1");
});

test("a tag that has moved is another image after the next pull", async () => {
  const { registry, store } = await openStore();
  const tagged = `${registryHost}/app:1`;
  await registry.push("app:1", { "app/main.cjs": "1" });
  const first = await store.pull(tagged, someone);
  await registry.push("app:1", { "app/main.cjs": "2" });
  expect(store.find(tagged)).toBe(first);
  const second = await store.pull(tagged, someone);
  expect(readFileSync(path.join(second.rootDir, "app/main.cjs"), "utf8")).toBe("2");
});

test("images that differ in their last layer share the files of the others", async () => {
  const { registry, store } = await openStore();
  const pull = async (text: string) =>
    store.pull(
      await registry.push(`app:${text}`, [
        { "app/a": "a" },
        dependencies,
        { "app/main.cjs": text, "app/a": text },
      ]),
      someone,
    );
  const [one, two] = [await pull("one"), await pull("two")];
  const inode = (rootDir: string, file: string) => statSync(path.join(rootDir, file)).ino;
  expect(inode(one.rootDir, "app/node_modules/big/data")).toBe(
    inode(two.rootDir, "app/node_modules/big/data"),
  );
  // A file that a later layer replaces is replaced in its own image only.
  for (const [image, text] of [
    [one, "one"],
    [two, "two"],
  ] as const)
    for (const file of ["app/main.cjs", "app/a"])
      expect(readFileSync(path.join(image.rootDir, file), "utf8")).toBe(text);
});

test("images of one repository share what has not changed of a large last layer, those of others do not", async () => {
  const { registry, store } = await openStore();
  const assets = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`app/${index}`, randomBytes(4000).toString("hex")]),
  );
  const pull = async (name: string, text: string) =>
    store.pull(await registry.push(name, { ...assets, "app/main.cjs": text }), someone);
  const one = await pull("app:one", "one");
  const other = await pull("other:one", "three");
  const two = await pull("app:two", "two");
  const inode = ({ rootDir }: LocalImage, file: string) => statSync(path.join(rootDir, file)).ino;
  expect(inode(two, "app/7")).toBe(inode(one, "app/7"));
  expect(inode(other, "app/7")).not.toBe(inode(one, "app/7"));
  expect(readFileSync(path.join(one.rootDir, "app/main.cjs"), "utf8")).toBe("one");
  expect(readFileSync(path.join(two.rootDir, "app/main.cjs"), "utf8")).toBe("two");
});

test("an image that has not been used for a day is removed, with the layers that only it had", async () => {
  const { dir, registry, store, clock } = await openStore();
  const used = await store.pull(await registry.push("used:1", { "app/main.cjs": "1" }), someone);
  const unused = await store.pull(
    await registry.push("unused:1", [dependencies, { "app/main.cjs": "2" }]),
    someone,
  );
  expect(readdirSync(dir).some((name) => name.startsWith("base-"))).toBe(true);
  await store.removeUnused(uses(), disk);
  expect(existsSync(unused.rootDir)).toBe(true);
  await clock.advance(25 * 3600 * 1000);
  await store.removeUnused(uses({ inUse: [used.digest] }), disk);
  expect([existsSync(used.rootDir), existsSync(unused.rootDir)]).toEqual([true, false]);
  expect(readdirSync(dir).some((name) => name.startsWith("base-"))).toBe(false);
});

describe("images of Functions at zero", () => {
  async function idleFunctions(count: number) {
    const { registry, store, clock } = await openStore();
    const images: LocalImage[] = [];
    for (let index = 0; index < count; index++) {
      const name = await registry.push(`idle-${index}:1`, {
        "app/data": "x".repeat(1000),
        n: `${index}`,
      });
      images.push(await store.pull(name, someone));
      await clock.advance(1000);
    }
    await clock.advance(7 * 24 * 3600 * 1000);
    const isThere = () => images.map(({ rootDir }) => existsSync(rootDir));
    const sizeOfEach = store.list()[0]?.sizeBytes ?? 0;
    return { store, sizeOfEach, isThere, named: images.map(({ digest }) => digest) };
  }

  test("stay as long as they have room, however many there are and however long ago they ran", async () => {
    const { store, isThere, named } = await idleFunctions(40);
    await store.removeUnused(uses({ named }), disk);
    expect(isThere()).not.toContain(false);
    await store.removeUnused(uses({ named: named.slice(1) }), disk);
    expect(isThere().indexOf(true)).toBe(1);
  });

  test("take a quarter of the disk at most: the longest unused go first", async () => {
    const { store, isThere, named, sizeOfEach } = await idleFunctions(8);
    await store.removeUnused(uses({ named }), sizeOfEach * 4 * 4);
    expect(isThere()).toEqual([false, false, false, false, true, true, true, true]);
  });

  test("go only for room while it is not known whose they are", async () => {
    const { store, isThere } = await idleFunctions(25);
    await store.removeUnused({ inUse: new Set(), named: undefined }, disk);
    expect(isThere()).not.toContain(false);
  });

  test("go after all others when the disk is nearly full", async () => {
    const { store, isThere, named, sizeOfEach } = await idleFunctions(4);
    await store.free(sizeOfEach * 1.5, uses({ named: named.slice(0, 2) }), 0);
    expect(isThere()).toEqual([true, true, false, false]);
  });
});

test("of images that nothing names, the twenty that were used last stay for a day", async () => {
  const { registry, store, clock } = await openStore();
  const images = [];
  for (let index = 0; index < 25; index++) {
    images.push(
      await store.pull(
        await registry.push(`edit:${index}`, { "app/main.cjs": `${index}` }),
        someone,
      ),
    );
    await clock.advance(1000);
  }
  const [first] = images;
  await store.removeUnused(uses(), disk);
  expect(images.every(({ rootDir }) => existsSync(rootDir))).toBe(true);
  await clock.advance(120_000);
  await store.removeUnused(uses({ inUse: [first?.digest ?? ""] }), disk);
  const left = images.map(({ rootDir }, index) => (existsSync(rootDir) ? index : -1));
  expect(left.filter((index) => index >= 0)).toEqual([
    0,
    ...Array.from({ length: 20 }, (_, i) => i + 5),
  ]);
});

test("an image that cannot be pulled leaves nothing behind", async () => {
  const { dir, store } = await openStore();
  await expect(store.pull(`${registryHost}/none:1`, someone)).rejects.toThrow("none");
  expect(readdirSync(dir)).toEqual([]);
});
