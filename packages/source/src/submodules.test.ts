/** Repositories in repositories: what comes, what is left out with a sentence, and what fails. */
import { mkdtempSync, symlinkSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fetchSource, type FetchRequest } from "./fetch-source.ts";
import { GitHttpServer } from "./testing/git-http-server.ts";
import { TestRepository } from "./testing/git-repository.ts";
import { contentsOf, login, ShopServers } from "./testing/shop-servers.ts";

type Entry = [mode: string, name: string, id: string];

const app = new TestRepository("app");
const lib = new TestRepository("lib");
const base = new TestRepository("base");
let shop: ShopServers;
let server: GitHttpServer;
let closed: GitHttpServer;
/** Commits. */
let inBase = "";
let inLib = "";

const modules = (urls: Record<string, string>): string =>
  Object.entries(urls)
    .map(
      ([path, url]) =>
        `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n\tupdate = !touch /tmp/spry-ran\n`,
    )
    .join("");

/** A commit with a handler, submodules at these paths, and other entries. */
function commitWith(
  repository: TestRepository,
  urls: Record<string, string>,
  commits: Record<string, string>,
  more: Entry[] = [],
): string {
  const links = Object.entries(commits).map(([path, id]): Entry => ["160000", path, id]);
  const tree = repository.tree([
    ["100644", "handler.js", repository.blob("handler")],
    ["100644", ".gitmodules", repository.blob(modules(urls))],
    ...links,
    ...more,
  ]);
  return repository.commitTree(tree, "main");
}

beforeAll(async () => {
  shop = await ShopServers.start();
  for (const [name, each] of Object.entries({ lib, base }))
    symlinkSync(each.directory, join(app.root, `${name}.git`));
  symlinkSync(shop.repository.directory, join(app.root, "shop.git"));
  server = await GitHttpServer.start({ root: app.root });
  closed = await GitHttpServer.start({ root: app.root, login });
  inBase = base.commit({ "base.js": "base" });
  inLib = commitWith(lib, { deep: "../base.git" }, { deep: inBase });
});
afterAll(async () => {
  await shop[Symbol.asyncDispose]();
  for (const each of [server, closed]) await each[Symbol.asyncDispose]();
  for (const each of [app, lib, base]) each[Symbol.dispose]();
});

async function fetched(commit: string, request: Partial<FetchRequest> = {}) {
  const destination = mkdtempSync(join(shop.scratch, "out-"));
  const lines: string[] = [];
  const { leftOut } = await fetchSource({
    url: `${server.origin}/app.git`,
    reference: "main",
    commit,
    baseDir: "/",
    scratch: shop.scratch,
    allowed: ["127.0.0.0/8"],
    report: (line) => lines.push(line),
    ...request,
    destination,
  });
  return { files: contentsOf(destination), leftOut, lines };
}

describe("a submodule", () => {
  test("comes with its own submodules, by relative and by whole URLs", async () => {
    const urls = { lib: "../lib.git", "code/base": `${server.origin}/base.git` };
    const code = app.tree([["160000", "base", inBase]]);
    const commit = commitWith(app, urls, { lib: inLib }, [["40000", "code", code]]);
    const { files, leftOut } = await fetched(commit);
    expect(leftOut).toEqual([]);
    expect(files).toMatchObject({
      "handler.js": "handler",
      "lib/handler.js": "handler",
      "lib/deep/base.js": "base",
      "code/base/base.js": "base",
    });
  });

  test("comes into a folder of the repository, and no other one is asked for", async () => {
    const code = app.tree([
      ["100644", "handler.js", app.blob("code")],
      ["160000", "base", inBase],
    ]);
    const urls = { "code/base": "../base.git", lib: "../lib.git" };
    const commit = commitWith(app, urls, { lib: inLib }, [["40000", "code", code]]);
    const before = server.requests.length;
    const { files } = await fetched(commit, { baseDir: "code" });
    expect(files).toEqual({ "handler.js": "code", "base/base.js": "base" });
    expect(server.requests.slice(before).join()).not.toContain("/lib.git/");
  });

  test("is asked for with the credentials of its host, and other hosts are not shown them", async () => {
    const commit = commitWith(
      app,
      {
        base: "../base.git",
        other: `${server.origin}/base.git`,
        third: `${shop.closed.origin}/shop.git`,
      },
      { base: inBase, other: inBase, third: shop.commits.first },
    );
    const shown: (string | undefined)[] = [];
    const listen = (request: IncomingMessage) => {
      shown.push(request.headers.authorization);
      return false;
    };
    server.intercept = listen;
    shop.closed.intercept = listen;
    const { files, leftOut } = await fetched(commit, {
      url: `${closed.origin}/app.git`,
      credentials: { type: "basic", ...login },
    });
    server.intercept = shop.closed.intercept = undefined;
    expect(files).toMatchObject({ "base/base.js": "base", "other/base.js": "base" });
    expect(leftOut).toEqual(['submodule "third" is left out: Authorization to git server failed']);
    expect(new Set(shown)).toEqual(new Set([undefined]));
  });

  test.each<[what: string, url: string | undefined, reason: string]>([
    ["on this machine", "file:///srv/x.git", "its URL has the scheme file: use https or ssh"],
    ["at a path", "/srv/x.git", "its URL is neither an https URL nor an SSH address"],
    ["of a helper", "ext::sh -c touch% /tmp/x", "its URL is not a URL"],
    ["of git's own protocol", "git://h/x", "its URL has the scheme git: use https or ssh"],
    ["with a password", "https://a:b@h/x", "its URL holds a password"],
    ["without a URL", undefined, "it has no URL in .gitmodules"],
    ["above the host", "../../../x.git", "its URL leads above the host of the repository"],
    ["at the address of metadata", "http://169.254.169.254/x.git", "its URL leads to an address"],
    ["at that address by a number", "http://2852039166/x.git", "its URL leads to an address"],
  ])("%s is left out, with a warning", async (_, url, reason) => {
    const commit = commitWith(app, url === undefined ? {} : { lib: url }, { lib: inLib });
    const { files, leftOut, lines } = await fetched(commit);
    expect(Object.keys(files).sort()).toEqual([".gitmodules", "handler.js"]);
    expect(leftOut).toEqual([expect.stringContaining(`submodule "lib" is left out: ${reason}`)]);
    expect(lines).toContain(`warning: ${leftOut[0]}`);
  });

  test("whose commit is not there is left out, with a warning", async () => {
    const commit = commitWith(app, { lib: "../base.git" }, { lib: "c".repeat(40) });
    const { leftOut } = await fetched(commit);
    expect(leftOut).toEqual([
      `submodule "lib" is left out: commit ${"c".repeat(40)} is not in the repository`,
    ]);
  });

  test("that redirects to a forbidden address is left out", async () => {
    const redirecting = createServer((request, response) =>
      response.writeHead(302, { location: `http://169.254.169.254${request.url}` }).end(),
    );
    await new Promise<void>((resolve) => redirecting.listen(0, "127.0.0.1", resolve));
    const { port } = redirecting.address() as AddressInfo;
    const commit = commitWith(app, { lib: `http://127.0.0.1:${port}/x.git` }, { lib: inLib });
    const { leftOut } = await fetched(commit);
    redirecting.close();
    expect(leftOut).toEqual([expect.stringContaining("leads to an address")]);
  });

  test("whose server cannot be reached fails for now, by its name", async () => {
    const commit = commitWith(app, { lib: "http://127.0.0.1:9/x.git" }, { lib: inLib });
    await expect(fetched(commit)).rejects.toMatchObject({
      failure: "temporary",
      message: expect.stringMatching(/^submodule "lib": the Git server cannot be reached/),
    });
  });

  test("that is more than a source may have fails, by its name", async () => {
    const big = base.commit({ "big.bin": Buffer.alloc(101_000_000) }, "big");
    const commit = commitWith(app, { "a b": "../base.git" }, { "a b": big });
    await expect(fetched(commit)).rejects.toMatchObject({
      failure: "unrecoverable",
      message:
        'with submodule "a b" the source has 101.0 MB: at most 10000 files and 100.0 MB are possible',
    });
  });

  test("one of too many fails", async () => {
    const paths = Array.from({ length: 51 }, (_, at) => `s${at}`);
    const all = <T>(value: T) => Object.fromEntries(paths.map((path) => [path, value]));
    const commit = commitWith(app, all("file:///x"), all(inBase));
    await expect(fetched(commit)).rejects.toThrow(
      /^submodule "s\d+": a source has at most 50 submodules/,
    );
  });

  test("too deep in others fails", async () => {
    let inner = inBase;
    for (let depth = 0; depth < 10; depth++)
      inner = commitWith(lib, { m: depth === 0 ? "../base.git" : "../lib.git" }, { m: inner });
    const commit = commitWith(app, { lib: "../lib.git" }, { lib: inner });
    await expect(fetched(commit)).rejects.toThrow("more than 8 repositories in each other");
  });

  test("under the name of a link is refused, and nothing is written behind it", async () => {
    const outside = mkdtempSync(join(shop.scratch, "outside-"));
    const commit = commitWith(app, { "d/x": "../base.git" }, {}, [
      ["120000", "d", app.blob(outside)],
      ["40000", "d", app.tree([["160000", "x", inBase]])],
    ]);
    await fetched(commit).catch(() => undefined);
    expect(contentsOf(outside)).toEqual({});
  });
});
