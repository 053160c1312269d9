import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { packTar, type TarEntry } from "modern-tar";
import { describe, expect, test } from "vitest";
import { digestOf, PlacedFiles, unpackLayer, type UnpackLimits } from "./index.ts";
import { temporaryDirectory } from "./testing/registry.ts";

const file = (name: string, body = "", mode = 0o644): TarEntry => ({
  header: { name, size: Buffer.byteLength(body), type: "file", mode },
  body,
});
const directory = (name: string, mode = 0o755): TarEntry => ({
  header: { name, size: 0, type: "directory", mode },
});
const link = (name: string, linkname: string): TarEntry => ({
  header: { name, size: 0, type: "symlink", linkname },
});
const hardLink = (name: string, linkname: string): TarEntry => ({
  header: { name, size: 0, type: "link", linkname },
});

async function* chunked(bytes: Uint8Array, size = bytes.length): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Unpacks layers, each a list of entries, into `<dir>/root`; `<dir>/outside` is what none may reach. */
async function unpack(layers: TarEntry[][], options: { dir?: string; limits?: UnpackLimits } = {}) {
  const dir = options.dir ?? temporaryDirectory();
  const root = join(dir, "root");
  mkdirSync(root, { recursive: true });
  writeFileSync(join(dir, "outside"), "untouched");
  const limits = options.limits ?? {};
  for (const layer of layers) await unpackLayer(chunked(await packTar(layer)), root, { limits });
  return { dir, root, read: (name: string) => readFileSync(join(root, name), "utf8") };
}

function messagesOf(error: unknown): string {
  const cause = (error as Error).cause;
  return (error as Error).message + (cause ? `: ${messagesOf(cause)}` : "");
}

describe("a layer", () => {
  test("keeps files, folders, links and the right to execute", async () => {
    const long = `${"a-long-name/".repeat(20)}ü.txt`;
    const { root, read } = await unpack([
      [
        file("./bin/run", "#!", 0o4777),
        link("bin/alias", "run"),
        hardLink("bin/second", "bin/run"),
        file(long, "deep"),
        directory("empty/"),
        directory("tmp/", 0o1777),
        directory("open/", 0o777),
      ],
    ]);
    expect(statSync(join(root, "tmp")).mode & 0o7777).toBe(0o1777);
    expect(statSync(join(root, "open")).mode & 0o7777).toBe(0o755);
    expect(statSync(join(root, "bin/run")).mode & 0o7777).toBe(0o755);
    expect(read("bin/alias")).toBe("#!");
    expect(statSync(join(root, "bin/second")).nlink).toBe(2);
    expect(read(long)).toBe("deep");
    expect(readdirSync(join(root, "empty"))).toEqual([]);
  });

  test("is read plain, by gzip and by zstd, in chunks of any size", async () => {
    const body = "x".repeat(3000);
    const tar = await packTar([file("a", body), file(`${"n/".repeat(90)}b`, body)]);
    for (const bytes of [tar, gzipSync(tar), zstdCompressSync(tar)]) {
      for (const size of [1, 513, bytes.length]) {
        const root = temporaryDirectory();
        await unpackLayer(chunked(bytes, size), root, { diffId: digestOf(tar) });
        expect(readFileSync(join(root, "a"), "utf8")).toBe(body);
        expect(readFileSync(join(root, `${"n/".repeat(90)}b`), "utf8")).toBe(body);
      }
    }
  });

  test("replaces what lower layers have, of whatever kind", async () => {
    const { root, read } = await unpack([
      [file("a", "1"), file("b/c", "1"), link("l", "b"), file("d", "1")],
      [file("a", "2"), file("b", "now a file"), directory("l"), file("l/x", "2"), file("d", "2")],
    ]);
    expect([read("a"), read("b"), read("l/x"), read("d")]).toEqual(["2", "now a file", "2", "2"]);
    expect(lstatSync(join(root, "l")).isDirectory()).toBe(true);
  });

  test("hides what its whiteouts name in lower layers, and nothing of its own", async () => {
    const { root, read } = await unpack([
      [file("gone/a", "1"), file("kept", "1"), file("dir/old", "1"), file("dir/sub/old", "1")],
      [
        file(".wh.gone"),
        file("dir/sub/new", "2"),
        file("dir/new", "2"),
        file("dir/.wh..wh..opq"),
        file("dir/.wh..wh.plnk"),
      ],
    ]);
    expect(readdirSync(root).sort()).toEqual(["dir", "kept"]);
    expect(readdirSync(join(root, "dir")).sort()).toEqual(["new", "sub"]);
    expect(read("dir/sub/new")).toBe("2");
  });

  test("is followed through the links of lower layers, as in a root file system", async () => {
    const { read } = await unpack([
      [directory("usr/lib"), link("lib", "usr/lib"), link("abs", "/usr")],
      [file("lib/a", "1"), file("abs/b", "2")],
    ]);
    expect([read("usr/lib/a"), read("usr/b")]).toEqual(["1", "2"]);
  });
});

describe("a hostile layer", () => {
  const refused: { name: string; layer: TarEntry[]; why: RegExp; limits?: UnpackLimits }[] = [
    {
      name: "a path with ..",
      layer: [file("a/../../outside", "x")],
      why: /entry "a\/\.\.\/.*the path leaves the image/,
    },
    {
      name: "a hard link with ..",
      layer: [hardLink("a", "../outside")],
      why: /the path leaves the image/,
    },
    {
      name: "a hard link to nothing",
      layer: [hardLink("a", "b")],
      why: /linked to "b", which is not a file/,
    },
    { name: "a whiteout of the parent", layer: [file("a/.wh..")], why: /a whiteout of nothing/ },
    {
      name: "a file below a file",
      layer: [file("a", "1"), file("a/b", "2")],
      why: /a is not a directory/,
    },
    {
      name: "a ring of links",
      layer: [link("a", "b"), link("b", "a"), file("a/c", "1")],
      why: /too many links/,
    },
    {
      name: "too many entries",
      layer: [file("a"), file("b"), file("c")],
      limits: { entries: 2 },
      why: /more than 2 entries/,
    },
    {
      name: "too many bytes",
      layer: [file("a", "x".repeat(5000))],
      limits: { size: 4096 },
      why: /more than 4096 bytes/,
    },
    {
      name: "a root that is a file",
      layer: [link("./", "/etc")],
      why: /the root must be a directory/,
    },
  ];
  test.each(refused)("is refused: $name", async ({ layer, limits, why }) => {
    const dir = temporaryDirectory();
    const failure = await unpack([layer], { dir, ...(limits ? { limits } : {}) }).catch(
      (error: unknown) => error,
    );
    expect(messagesOf(failure)).toMatch(why);
    expect(readFileSync(join(dir, "outside"), "utf8")).toBe("untouched");
  });

  const harmless: { name: string; layer: TarEntry[] }[] = [
    { name: "an absolute path", layer: [file("/outside", "x")] },
    {
      name: "a link out, then a file through it",
      layer: [link("up", ".."), file("up/outside", "x")],
    },
    {
      name: "an absolute link, then a file through it",
      layer: [link("abs", "/../.."), file("abs/outside", "x")],
    },
    {
      name: "a link in place of a folder that is known",
      layer: [file("d/a", "1"), link("d", ".."), file("d/outside", "x")],
    },
    {
      name: "a file over a link that leads out",
      layer: [link("outside", "../outside"), file("outside", "x")],
    },
    {
      name: "a hard link to a link that leads out",
      layer: [
        file("d/e/f", "1"),
        link("d/l", "../.."),
        hardLink("l", "d/l"),
        file("l/outside", "x"),
      ],
    },
    {
      name: "an opaque whiteout through a link",
      layer: [link("up", ".."), file("up/.wh..wh..opq")],
    },
  ];
  test.each(harmless)("stays inside: $name", async ({ layer }) => {
    const { dir } = await unpack([layer]);
    expect(readFileSync(join(dir, "outside"), "utf8")).toBe("untouched");
    expect(readdirSync(dir).sort()).toEqual(["outside", "root"]);
  });

  test("gets links that stay inside whoever follows them", async () => {
    const { root } = await unpack([
      [
        link("etc", "/etc"),
        link("a/b/c", "/x/../../y"),
        link("a/b/d", "../../../../z"),
        link("a/self", "."),
      ],
    ]);
    const targets = ["etc", "a/b/c", "a/b/d", "a/self"].map((name) =>
      readlinkSync(join(root, name)),
    );
    expect(targets).toEqual(["etc", "../../y", "../../z", "."]);
  });

  test("does not get out by a link that was there before", async () => {
    const dir = temporaryDirectory();
    mkdirSync(join(dir, "root"));
    symlinkSync("..", join(dir, "root/up"));
    await unpack([[file("up/outside", "x")]], { dir });
    expect(readFileSync(join(dir, "outside"), "utf8")).toBe("untouched");
    expect(existsSync(join(dir, "root/outside"))).toBe(true);
  });

  test("is refused when it ends in the middle, is no archive, or is not what the configuration names", async () => {
    const tar = await packTar([file("a", "x".repeat(2000))]);
    const root = temporaryDirectory();
    const failing = async (bytes: Uint8Array, options = {}) =>
      messagesOf(await unpackLayer(chunked(bytes), root, options).catch((error: unknown) => error));
    expect(await failing(tar.subarray(0, 1500))).toBe('the archive ends in the middle of "a"');
    expect(await failing(gzipSync(tar).subarray(0, 60))).toMatch(/unexpected end of file/);
    expect(await failing(Buffer.alloc(2000, "no tar"))).toMatch(/not a tar archive/);
    expect(await failing(tar, { diffId: digestOf("other") })).toMatch(
      /which the configuration names/,
    );
  });

  test("has directories that only paths go through counted as entries", async () => {
    const deep = (name: string) => file(`${name}/${"d/".repeat(100)}x`);
    await expect(
      unpack([["a", "b", "c", "d"].map(deep)], { limits: { entries: 350 } }),
    ).rejects.toThrow();
    await unpack([["a", "b", "c"].map(deep)], { limits: { entries: 350 } });
  });

  test("of many entries lets others have their turn, also within one piece", async () => {
    const entries = Array.from({ length: 400 }, (_, i) => file(`${i}/${"d/".repeat(50)}x`));
    let [turns, isOver] = [0, false];
    const others = () => {
      turns++;
      if (!isOver) setImmediate(others);
    };
    const piece = await packTar(entries);
    const dir = temporaryDirectory();
    const before = turns;
    setImmediate(others);
    await unpackLayer(chunked(piece), dir);
    isOver = true;
    expect(turns - before).toBeGreaterThan(3);
  });

  test("leaves nothing next to the image of what it has replaced", async () => {
    const { dir, root } = await unpack([
      [file("old/a/x"), file("app/y"), file("app/z")],
      [file("old"), file("app/.wh..wh..opq"), file("app/new")],
    ]);
    expect(readdirSync(root).toSorted()).toEqual(["app", "old"]);
    expect(readdirSync(join(root, "app"))).toEqual(["new"]);
    expect(readdirSync(dir).toSorted()).toEqual(["outside", "root"]);
  });

  test("that grows a thousandfold is stopped at the limit", async () => {
    const bomb = gzipSync(
      Buffer.concat([await packTar([file("a")]), Buffer.alloc(64 * 1024 * 1024)]),
    );
    const failure = await unpackLayer(chunked(bomb), temporaryDirectory(), {
      limits: { size: 1024 * 1024 },
    }).catch((error: unknown) => error);
    expect(messagesOf(failure)).toMatch(/more than 1048576 bytes/);
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "owners and modes are kept where a container has a copy of the files; only root can do that",
  async () => {
    const owned = (entry: TarEntry, uid: number, gid: number): TarEntry => ({
      ...entry,
      header: { ...entry.header, uid, gid },
    });
    const large = "x".repeat(2 * 1024 * 1024);
    const layer = (uid: number) => [
      owned(directory("data", 0o2775), uid, 33),
      owned(file("data/small", "1", 0o4640), uid, 33),
      owned(file("data/large", large, 0o666), uid, 33),
      owned(directory("root", 0o700), 0, 0),
      directory("open", 0o777),
      directory("sticky", 0o1777),
      file("plain"),
    ];
    const rightsIn = (root: string) =>
      Object.fromEntries(
        ["data", "data/small", "data/large", "root", "open", "sticky", "plain"].map((name) => {
          const { uid, gid, mode } = lstatSync(join(root, name));
          return [name, `${uid}:${gid} ${(mode & 0o7777).toString(8)}`];
        }),
      );
    const unpackAll = async (uids: number[], earlier?: string) => {
      const root = temporaryDirectory();
      const placed = new PlacedFiles();
      for (const uid of uids)
        await unpackLayer(chunked(await packTar(layer(uid))), root, {
          keepsOwners: true,
          placed,
          earlier: earlier === undefined ? undefined : { dir: earlier },
        });
      return root;
    };
    const rights = (uid: number) => ({
      data: `${uid}:33 775`,
      "data/small": `${uid}:33 640`,
      "data/large": `${uid}:33 666`,
      root: "0:0 700",
      open: "0:0 777",
      sticky: "0:0 1777",
      plain: "0:0 644",
    });
    const first = await unpackAll([33]);
    expect(rightsIn(first)).toEqual(rights(33));
    // A later layer, and a later version, may give all of it to another user.
    expect(rightsIn(await unpackAll([33, 101]))).toEqual(rights(101));
    const later = await unpackAll([101], first);
    expect(rightsIn(later)).toEqual(rights(101));
    expect(lstatSync(join(later, "plain")).ino).toBe(lstatSync(join(first, "plain")).ino);
    const tooLarge = await packTar([owned(file("a"), 2 ** 32 - 1, 0)]);
    await expect(unpackLayer(chunked(tooLarge), temporaryDirectory())).rejects.toThrow(
      "invalid owner",
    );
  },
);

test("files that an earlier version has with the same content and mode are shared, others are written", async () => {
  const dir = temporaryDirectory();
  const [earlier, root] = ["earlier", "root"].map((name) => join(dir, name)) as [string, string];
  const large = "x".repeat(2 * 1024 * 1024);
  const names = ["same", "empty", "changed", "run", "large", "linked", "folder/in"];
  const layer = (changed: string, mode: number) =>
    packTar([
      file("same", "1"),
      file("empty"),
      file("changed", changed),
      file("run", "#!", mode),
      file("large", large),
      file("linked", "1"),
      file("folder/in", "3"),
      file("twice", "1"),
      file("twice", "2"),
    ]);
  mkdirSync(earlier);
  await unpackLayer(chunked(await layer("a", 0o644)), earlier);
  rmSync(join(earlier, "linked"));
  symlinkSync("same", join(earlier, "linked"));
  rmSync(join(earlier, "folder"), { recursive: true });
  writeFileSync(join(earlier, "folder"), "");
  mkdirSync(root);
  writeFileSync(join(root, "same"), "of a lower layer");
  await unpackLayer(chunked(await layer("b", 0o755), 700), root, { earlier: { dir: earlier } });
  const inode = (place: string, name: string) => lstatSync(join(place, name)).ino;
  const inBoth = names.slice(0, -1);
  expect(inBoth.filter((name) => inode(root, name) === inode(earlier, name))).toEqual([
    "same",
    "empty",
  ]);
  const contents = names.map((name) => readFileSync(join(root, name), "utf8"));
  expect(contents).toEqual(["1", "", "b", "#!", large, "1", "3"]);
  expect(readFileSync(join(root, "twice"), "utf8")).toBe("2");
  expect(readFileSync(join(earlier, "twice"), "utf8")).toBe("2");
  expect(readFileSync(join(earlier, "changed"), "utf8")).toBe("a");
  expect(statSync(join(root, "run")).mode & 0o777).toBe(0o755);
});

test("what a layer has brought is known: the next version shares it without looking at it again", async () => {
  const dir = temporaryDirectory();
  const roots = ["one", "two", "three"].map((name) => join(dir, name));
  const [one = "", two = "", three = ""] = roots;
  for (const root of roots) mkdirSync(root);
  const large = "x".repeat(2 * 1024 * 1024);
  const layer = (changed: string) =>
    packTar([
      file("same", "1"),
      file("changed", changed),
      file("run", "1", 0o755),
      file("large", large),
    ]);
  const first = new PlacedFiles();
  await unpackLayer(chunked(await layer("a"), 700), one, { placed: first });
  expect(first.isWhole).toBe(true);
  const sizes = [...first.files].map(([path, { size }]) => [path, size]);
  expect(sizes).toEqual([
    ["same", 1],
    ["changed", 1],
    ["run", 1],
    ["large", large.length],
  ]);
  const second = new PlacedFiles();
  const earlier = { dir: one, content: first.files };
  await unpackLayer(chunked(await layer("b")), two, { earlier, placed: second });
  const isShared = (name: string) =>
    lstatSync(join(one, name)).ino === lstatSync(join(two, name)).ino;
  expect(["same", "changed", "run", "large"].map(isShared)).toEqual([true, false, true, false]);
  expect(readFileSync(join(two, "changed"), "utf8")).toBe("b");
  expect(second.isWhole).toBe(true);
  // Files that have gone from the earlier version are written.
  rmSync(join(one, "same"));
  writeFileSync(join(three, "same"), "of a lower layer");
  const third = new PlacedFiles();
  await unpackLayer(chunked(await layer("b")), three, { earlier, placed: third });
  expect(readFileSync(join(three, "same"), "utf8")).toBe("1");
  expect(third.isWhole).toBe(false);
});

test.each<[string, TarEntry[]]>([
  ["a whiteout", [file(".wh.lower")]],
  ["a second name of a file", [file("a", "1"), hardLink("b", "a")]],
  ["a file where one was", [file("lower", "2")]],
  ["a link where a file was", [link("lower", "x")]],
  ["a directory where a file was", [directory("lower")]],
])("with %s, what a layer has brought is not all that has changed", async (_, entries) => {
  const root = temporaryDirectory();
  writeFileSync(join(root, "lower"), "1");
  const placed = new PlacedFiles();
  await unpackLayer(chunked(await packTar(entries)), root, { placed });
  expect(placed.isWhole).toBe(false);
});
