/** What is fetched of a commit, from well-meaning repositories and from others. */
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GitHttpServer } from "./testing/git-http-server.ts";
import { TestRepository } from "./testing/git-repository.ts";
import { ShopServers, urlOf } from "./testing/shop-servers.ts";

let shop: ShopServers;
beforeAll(async () => {
  shop = await ShopServers.start();
});
afterAll(() => shop[Symbol.asyncDispose]());

describe("of a commit", () => {
  test("all files come", async () => {
    expect(Object.keys(await shop.fetched()).sort()).toEqual([
      "big.bin",
      "functions/hello/handler.js",
      "handler.js",
    ]);
  });

  test("an earlier one comes, though the branch has moved on", async () => {
    expect(await shop.fetched({ commit: shop.commits.first })).toMatchObject({
      "handler.js": "one",
    });
  });

  test.each(["functions/hello", "/functions/hello/", "./functions//hello"])(
    "only the folder %s comes, and little else is sent",
    async (baseDir) => {
      const before = shop.open.sentBytes;
      expect(await shop.fetched({ baseDir })).toEqual({ "handler.js": "hello one" });
      expect(shop.open.sentBytes - before).toBeLessThan(5000);
    },
  );

  test.each([
    ["none", /baseDir "none" does not exist at commit/],
    ["handler.js", /baseDir "handler.js" is not a folder/],
    ["functions/*", /does not exist/],
    [":(top)functions", /does not exist/],
    ["../x", /is not a path inside a repository/],
    [".git", /is not a path inside a repository/],
  ])("the folder %s is the author's mistake", async (baseDir, message) =>
    expect(shop.fetched({ baseDir })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringMatching(message),
    }),
  );

  test("that does not exist is reported to the author", async () => {
    await expect(shop.fetched({ commit: "b".repeat(40) })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: `commit ${"b".repeat(40)} is not in the repository`,
    });
  });

  test("more than may come is given up", async () => {
    await expect(shop.fetched({ maxBytes: 2 * 1024 ** 2 })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: "the repository is larger than 2 MiB",
    });
  });

  test("its folder comes from a server that knows only the old protocol", async () => {
    const url = urlOf(shop.old);
    for (const commit of [shop.commits.second, shop.commits.first]) {
      const files = await shop.fetched({ url, commit, baseDir: "functions/hello" });
      expect(files).toEqual({ "handler.js": "hello one" });
    }
  });

  test("it comes from a server that sends neither by id nor in part", async () => {
    using strict = new TestRepository();
    strict.git(["config", "uploadpack.allowFilter", "false"]);
    strict.git(["config", "uploadpack.allowAnySHA1InWant", "false"]);
    const first = strict.commit({ "a/handler.js": "1" });
    const second = strict.commit({ "a/handler.js": "2" });
    await using server = await GitHttpServer.start({ root: strict.root, isModern: false });
    const url = urlOf(server);
    expect(await shop.fetched({ url, commit: second, baseDir: "a" })).toEqual({
      "handler.js": "2",
    });
    expect(await shop.fetched({ url, commit: first, baseDir: "a" })).toEqual({ "handler.js": "1" });
  });
});

describe("a folder behind links", () => {
  const linked = new TestRepository("linked");
  let url = "";
  let commit = "";
  let server: GitHttpServer;
  const blob = (text: string) => linked.blob(text);
  beforeAll(async () => {
    server = await GitHttpServer.start({ root: linked.root });
    url = `${server.origin}/linked.git`;
    const deep = linked.tree([["100644", "handler.js", blob("deep")]]);
    const code = linked.tree([
      ["100644", "handler.js", blob("code")],
      ["40000", "deep", deep],
      ["120000", "up", blob("..")],
      ["120000", "out", blob("../../..")],
    ]);
    const tree = linked.tree([
      ["40000", "code", code],
      ["120000", "link", blob("code")],
      ["120000", "chain", blob("./link/../link//deep/")],
      ["120000", "file", blob("code/handler.js")],
      ["120000", "own", blob("own")],
      ["120000", "one", blob("two")],
      ["120000", "two", blob("one")],
      ["120000", "none", blob("nothing")],
    ]);
    commit = linked.commitTree(tree, "main");
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    linked[Symbol.dispose]();
  });

  test.each<[baseDir: string, content: string]>([
    ["link", "code"],
    ["link/deep", "deep"],
    ["chain", "deep"],
    ["code/up/link", "code"],
  ])("%s is fetched", async (baseDir, content) => {
    expect(await shop.fetched({ url, commit, baseDir })).toMatchObject({ "handler.js": content });
  });

  test("which leads to the repository's root is all of it", async () => {
    const files = await shop.fetched({ url, commit, baseDir: "code/up" });
    expect(files).toMatchObject({ "code/handler.js": "code" });
  });

  test.each<[baseDir: string, message: RegExp]>([
    ["file", /baseDir "file" is not a folder at commit/],
    ["own", /baseDir "own" is a link that leads in a circle/],
    ["one", /baseDir "one" is a link that leads in a circle/],
    ["none", /baseDir "none" does not exist at commit/],
    ["link/none", /baseDir "link\/none" does not exist at commit/],
    ["code/out", /the link "code\/out" leads out of it/],
  ])("%s is the author's mistake", async (baseDir, message) =>
    expect(shop.fetched({ url, commit, baseDir })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringMatching(message),
    }),
  );
});

test("a repository that is only a folder of files can be built from", async () => {
  using plain = new TestRepository();
  const first = plain.commit({ "a/handler.js": "1" });
  const second = plain.commit({ "a/handler.js": "2" });
  plain.git(["update-server-info"]);
  await using server = await GitHttpServer.start({ root: plain.root, isDumb: true });
  const url = urlOf(server);
  expect(await shop.resolve("main", url)).toBe(second);
  expect(await shop.fetched({ url, commit: first, baseDir: "a" })).toEqual({ "handler.js": "1" });
});

describe("a repository that means harm", () => {
  const evil = new TestRepository("evil");
  let url = "";
  let server: GitHttpServer;
  beforeAll(async () => {
    server = await GitHttpServer.start({ root: evil.root });
    url = `${server.origin}/evil.git`;
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    evil[Symbol.dispose]();
  });
  const blob = evil.blob("evil");
  const fine: [string, string, string] = ["100644", "handler.js", evil.blob("fine")];
  const commitOf = (name: string, entries: [string, string, string][]) =>
    evil.commitTree(evil.tree([fine, ...entries]), name);

  test.each<[string, () => [string, string, string][], string]>([
    ["a path that leads out", () => [["40000", "..", evil.tree([["100644", "x", blob]])]], "up"],
    ["a path with a slash", () => [["100644", "a/../../x", blob]], "slash"],
    ["a .git", () => [["40000", ".git", evil.tree([["100644", "config", blob]])]], "git"],
    ["a .GIT", () => [["40000", ".GIT", evil.tree([["100644", "config", blob]])]], "upper"],
    [
      "two of a name, link and folder",
      () => [
        ["120000", "d", evil.blob(tmpdir())],
        ["40000", "d", evil.tree([["100644", "x", blob]])],
      ],
      "twice",
    ],
  ])("with %s writes nothing outside", async (_, entries, name) => {
    const commit = commitOf(name, entries());
    const before = new Set(readdirSync(shop.scratch));
    const files = await shop.fetched({ url, reference: name, commit }).catch(() => undefined);
    expect(Object.keys(files ?? {}).filter((file) => /(^|\/)\.git(\/|$)/.test(file))).toEqual([]);
    const left = readdirSync(shop.scratch).filter((each) => !before.has(each));
    expect(left.filter((each) => !each.startsWith("out-"))).toEqual([]);
    expect(existsSync(join(tmpdir(), "x"))).toBe(false);
  });

  test("with a link as baseDir is refused", async () => {
    const commit = commitOf("link", [["120000", "link", evil.blob("/etc")]]);
    await expect(shop.fetched({ url, reference: "link", commit, baseDir: "link" })).rejects.toThrow(
      /is not a folder/,
    );
  });

  test("with a line end in a path has just that", async () => {
    const commit = commitOf("line", [["100644", "a\nb", blob]]);
    expect(await shop.fetched({ url, reference: "line", commit })).toEqual({
      "handler.js": "fine",
      "a\nb": "evil",
    });
  });

  test("with submodules has empty folders, and runs nothing", async () => {
    const file = join(shop.scratch, "ran");
    const modules = `[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch% ${file}\n`;
    const entries: [string, string, string][] = [
      ["100644", ".gitmodules", evil.blob(modules)],
      ["160000", "s", shop.commits.first],
    ];
    const commit = commitOf("module", entries);
    const files = await shop.fetched({ url, reference: "module", commit });
    expect(Object.keys(files).sort()).toEqual([".gitmodules", "handler.js"]);
    expect(existsSync(file)).toBe(false);
    await expect(shop.fetched({ url, reference: "module", commit, baseDir: "s" })).rejects.toThrow(
      /is a submodule/,
    );
  });

  test("with a folder that holds itself ten to the ten times is given up at once", async () => {
    let tree = evil.tree([["100644", "file", blob]]);
    for (let depth = 0; depth < 10; depth++) {
      const names = Array.from({ length: 10 }, (_, i) => `a-long-name-for-a-folder-${i}`);
      tree = evil.tree(names.map((name) => ["40000", name, tree]));
    }
    const commit = evil.commitTree(tree, "bomb");
    const memory = process.memoryUsage().rss;
    await expect(shop.fetched({ url, reference: "bomb", commit })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringContaining("too many files"),
    });
    expect(process.memoryUsage().rss - memory).toBeLessThan(200 * 1024 ** 2);
  });

  test("with filters in its attributes runs none", async () => {
    const attributes = "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-16\n";
    const commit = commitOf("filter", [["100644", ".gitattributes", evil.blob(attributes)]]);
    expect(Object.keys(await shop.fetched({ url, reference: "filter", commit })).sort()).toEqual([
      ".gitattributes",
      "handler.js",
    ]);
  });
});
