/** Real servers, Git's own over HTTP and sshd: what is said of a reference, what is fetched. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GitHttpServer } from "../testing/git-http-server.ts";
import { TestRepository } from "../testing/git-repository.ts";
import { createKeyPair, noSshReason, SshServer } from "../testing/ssh-server.ts";
import { type GitCredentials } from "./credentials.ts";
import { fetchSource, type FetchRequest } from "./fetch-source.ts";
import { unreachableServer } from "./git-error.ts";
import { GitSession, removeAbandonedSessions } from "./git-session.ts";
import { parseRepositoryUrl } from "./repository-url.ts";
import { resolveCommit } from "./resolve-commit.ts";

const login = { username: "ann", password: "p4ss w0rd'$(x)" };
/** The servers of these tests are on this machine. */
const allowed = ["127.0.0.0/8"];
const basic: GitCredentials = { type: "basic", ...login };
const repository = new TestRepository();
const scratch = mkdtempSync(join(tmpdir(), "scratch-"));
const commits = {
  first: repository.commit({ "handler.js": "one", "functions/hello/handler.js": "hello one" }),
  feature: "",
  second: "",
  other: "",
};
commits.feature = repository.commit({ "handler.js": "feature" }, "feature/a/b");
repository.git(["tag", "light", commits.first]);
repository.git(["tag", "-a", "-m", "a release", "v1.0", commits.first]);
repository.git(["tag", "main", commits.first]);
commits.second = repository.commit({ "big.bin": randomText(3_000_000), "handler.js": "two" });
repository.git(["update-ref", "refs/pull/7/head", commits.feature]);

let open: GitHttpServer;
let closed: GitHttpServer;
let old: GitHttpServer;
beforeAll(async () => {
  const { root } = repository;
  open = await GitHttpServer.start({ root });
  closed = await GitHttpServer.start({ root, login });
  old = await GitHttpServer.start({ root, isModern: false });
});
afterAll(async () => {
  for (const server of [open, closed, old]) await server[Symbol.asyncDispose]();
  repository[Symbol.dispose]();
  rmSync(scratch, { recursive: true });
});

function randomText(length: number): string {
  let state = 42;
  const next = () => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff);
  return Array.from({ length: length / 8 }, () => next().toString(16).padStart(8, "0")).join("");
}

const urlOf = (server: GitHttpServer) => `${server.origin}/shop.git`;
const resolve = (reference: string, url = urlOf(open), credentials?: GitCredentials) =>
  resolveCommit({ url, reference, credentials }, { allowed });

describe("a reference is", () => {
  test.each([
    ["a branch", "main", () => commits.second],
    ["a branch with slashes", "feature/a/b", () => commits.feature],
    ["a branch by its full name", "refs/heads/main", () => commits.second],
    ["a light tag", "light", () => commits.first],
    ["an annotated tag, as its commit", "v1.0", () => commits.first],
    ["a tag by its full name, even with a branch beside it", "refs/tags/main", () => commits.first],
    ["anything by its full name", "refs/pull/7/head", () => commits.feature],
  ])("%s: %s", async (_, reference, commit) => expect(await resolve(reference)).toBe(commit()));

  test("the same on a server that knows only the old protocol", async () => {
    expect(await resolve("feature/a/b", urlOf(old))).toBe(commits.feature);
    expect(await resolve("v1.0", urlOf(old))).toBe(commits.first);
  });

  test("a full commit id, without a request", async () => {
    const before = open.requests.length;
    expect(await resolve("A".repeat(40))).toBe("a".repeat(40));
    expect(open.requests).toHaveLength(before);
  });

  test.each([
    "feature",
    "a",
    "pull/7/head",
    "none",
    "ma",
    "--upload-pack=touch /tmp/x",
    "m*",
    "a\nb",
  ])("not %j", async (reference) =>
    expect(resolve(reference)).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringMatching(/^reference (not found|".*" is no name that Git allows)/s),
    }),
  );

  test("asked for with few bytes, however large the repository", async () => {
    const before = open.sentBytes;
    await resolve("main");
    expect(open.sentBytes - before).toBeLessThan(3000);
  });
});

describe("over HTTP, the server", () => {
  test("lets in who has username and password, whatever signs are in them", async () => {
    expect(await resolve("main", urlOf(closed), basic)).toBe(commits.second);
  });

  test.each<[string, GitCredentials | undefined]>([
    ["nobody", undefined],
    ["a wrong password", { ...basic, password: "wrong" }],
    ["a wrong user", { ...basic, username: "eve" }],
  ])("refuses %s", async (_, credentials) => {
    const error = { failure: "authorization", message: "Authorization to git server failed" };
    await expect(resolve("main", urlOf(closed), credentials)).rejects.toMatchObject(error);
  });

  test.each([
    ["that has no such repository", () => `${open.origin}/none.git`, /not found/],
    [
      "that is not there",
      () => "http://127.0.0.1:9/shop.git",
      /^the Git server cannot be reached, or what answers there is not a Git server/,
    ],
    ["that has no address", () => "https://git.invalid/shop.git", /Could not resolve host/],
  ])("%s is tried again", async (_, url, message) =>
    expect(resolve("main", url())).rejects.toMatchObject({
      failure: "temporary",
      message: expect.stringMatching(message),
    }),
  );

  test("learns no password by sending us elsewhere", async () => {
    const seen: (string | undefined)[] = [];
    await using trap = await GitHttpServer.start({ root: repository.root, login });
    trap.intercept = (request) => {
      seen.push(request.headers.authorization);
      return false;
    };
    await using shunt = await GitHttpServer.start({ root: repository.root });
    shunt.intercept = (request, response) => {
      response.writeHead(302, { location: `${trap.origin}${request.url}` }).end();
      return true;
    };
    const error = { failure: "authorization" };
    await expect(resolve("main", urlOf(shunt), basic)).rejects.toMatchObject(error);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter(Boolean)).toEqual([]);
  });

  test("cannot make an error show the password that it got", async () => {
    await using echo = await GitHttpServer.start({ root: repository.root, login });
    echo.intercept = (request, response) => {
      if (!request.headers.authorization) return false;
      response.writeHead(500, { "content-type": "text/plain" });
      response.end(`wrong: ${login.password} ${request.headers.authorization}\n`);
      return true;
    };
    const error = await resolve("main", urlOf(echo), basic).catch((each: unknown) => each as Error);
    expect(String(error)).toContain("wrong: *** Basic ***");
    expect(String(error)).not.toContain(login.password);
  });

  test.skipIf(process.platform !== "linux")(
    "that never ends telling of its names is given up before it fills the memory",
    async () => {
      const line = `${commits.first} refs/heads/${"x".repeat(200)}`;
      let sent = 0;
      open.intercept = (request, response) => {
        if (request.method !== "POST") return false;
        response.setHeader("content-type", "application/x-git-upload-pack-result");
        const more = () => {
          let isReady = true;
          while (isReady && !response.destroyed) {
            const lines = Array.from({ length: 5000 }, (_, at) => `${line}${sent + at}\n`);
            sent += 5000;
            const packets = lines.map(
              (each) => (each.length + 4).toString(16).padStart(4, "0") + each,
            );
            isReady = response.write(packets.join(""));
          }
        };
        response.on("drain", more);
        more();
        return true;
      };
      const failure = await resolve("main").catch((error: unknown) => error);
      open.intercept = undefined;
      expect(failure).toMatchObject({ failure: "temporary" });
      expect((failure as Error).message).toMatch(/sends more than can be taken/);
      // 512 MiB of memory is about as much on the wire.
      expect(sent * line.length).toBeLessThan(2 * 1024 ** 3);
    },
    60_000,
  );

  test("that sends nothing is given up with all of Git's processes", async () => {
    await using silent = await GitHttpServer.start({ root: repository.root });
    silent.intercept = () => true;
    const stop = new AbortController();
    const question = { url: urlOf(silent), reference: "main" };
    const answer = resolveCommit(question, { signal: stop.signal, allowed });
    await expect.poll(() => silent.requests.length).toBe(1);
    stop.abort();
    await expect(answer).rejects.toThrow("git was stopped");
  });
});

describe("nothing is left on disk", () => {
  test("by a process that was killed", () => {
    const dead = execFileSync("sh", ["-c", "echo $$"]).toString().trim();
    const left = mkdtempSync(join(scratch, `spry-git-${dead}-`));
    const used = mkdtempSync(join(scratch, `spry-git-${process.pid}-`));
    const other = mkdtempSync(join(scratch, "spry-git-"));
    removeAbandonedSessions(scratch);
    expect([left, used, other].map((each) => existsSync(each))).toEqual([false, true, true]);
  });

  test("by a question that is answered, and by one that fails", async () => {
    const prefix = `spry-git-${process.pid}-`;
    const ours = () => readdirSync(tmpdir()).filter((name) => name.startsWith(prefix));
    const before = ours();
    await resolve("main", urlOf(closed), basic);
    await resolve("main", urlOf(closed)).catch(() => {});
    expect(ours().filter((name) => !before.includes(name))).toEqual([]);
  });
});

/** Fetches into a directory of its own, and returns what is in it. */
async function fetched(request: Partial<FetchRequest> = {}): Promise<Record<string, string>> {
  const destination = mkdtempSync(join(scratch, "out-"));
  await fetchSource({
    url: urlOf(open),
    reference: "main",
    commit: commits.second,
    baseDir: "/",
    scratch,
    allowed,
    ...request,
    destination,
  });
  return contentsOf(destination);
}

function contentsOf(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { withFileTypes: true, recursive: true });
  return Object.fromEntries(
    entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [
        file.slice(directory.length + 1),
        existsSync(file) ? readFileSync(file, "utf8").slice(0, 100) : "a link to nothing",
      ]),
  );
}

describe("of a commit", () => {
  test("all files come", async () => {
    expect(Object.keys(await fetched()).sort()).toEqual([
      "big.bin",
      "functions/hello/handler.js",
      "handler.js",
    ]);
  });

  test("an earlier one comes, though the branch has moved on", async () => {
    expect(await fetched({ commit: commits.first })).toMatchObject({ "handler.js": "one" });
  });

  test.each(["functions/hello", "/functions/hello/", "./functions//hello"])(
    "only the folder %s comes, and little else is sent",
    async (baseDir) => {
      const before = open.sentBytes;
      expect(await fetched({ baseDir })).toEqual({ "handler.js": "hello one" });
      expect(open.sentBytes - before).toBeLessThan(5000);
    },
  );

  test.each([
    ["none", /baseDir "none" is not there at commit/],
    ["handler.js", /baseDir "handler.js" is no folder/],
    ["functions/*", /is not there/],
    [":(top)functions", /is not there/],
    ["../x", /is no folder of a repository/],
    [".git", /is no folder of a repository/],
  ])("the folder %s is the author's mistake", async (baseDir, message) =>
    expect(fetched({ baseDir })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringMatching(message),
    }),
  );

  test("that is not there the author is told", async () => {
    await expect(fetched({ commit: "b".repeat(40) })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: `commit ${"b".repeat(40)} is not in the repository`,
    });
  });

  test("more than may come is given up", async () => {
    await expect(fetched({ maxBytes: 2 * 1024 ** 2 })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: "the repository is larger than 2 MiB",
    });
  });

  test("its folder comes from a server that knows only the old protocol", async () => {
    const url = urlOf(old);
    for (const commit of [commits.second, commits.first]) {
      const files = await fetched({ url, commit, baseDir: "functions/hello" });
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
    expect(await fetched({ url, commit: second, baseDir: "a" })).toEqual({ "handler.js": "2" });
    expect(await fetched({ url, commit: first, baseDir: "a" })).toEqual({ "handler.js": "1" });
  });
});

test("a repository that is only a folder of files can be built from", async () => {
  using plain = new TestRepository();
  const first = plain.commit({ "a/handler.js": "1" });
  const second = plain.commit({ "a/handler.js": "2" });
  plain.git(["update-server-info"]);
  await using server = await GitHttpServer.start({ root: plain.root, isDumb: true });
  const url = urlOf(server);
  expect(await resolve("main", url)).toBe(second);
  expect(await fetched({ url, commit: first, baseDir: "a" })).toEqual({ "handler.js": "1" });
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
    const before = new Set(readdirSync(scratch));
    const files = await fetched({ url, reference: name, commit }).catch(() => undefined);
    expect(Object.keys(files ?? {}).filter((file) => /(^|\/)\.git(\/|$)/.test(file))).toEqual([]);
    const left = readdirSync(scratch).filter((each) => !before.has(each));
    expect(left.filter((each) => !each.startsWith("out-"))).toEqual([]);
    expect(existsSync(join(tmpdir(), "x"))).toBe(false);
  });

  test("with a link as baseDir is refused", async () => {
    const commit = commitOf("link", [["120000", "link", evil.blob("/etc")]]);
    await expect(fetched({ url, reference: "link", commit, baseDir: "link" })).rejects.toThrow(
      /is no folder/,
    );
  });

  test("with a line end in a path has just that", async () => {
    const commit = commitOf("line", [["100644", "a\nb", blob]]);
    expect(await fetched({ url, reference: "line", commit })).toEqual({
      "handler.js": "fine",
      "a\nb": "evil",
    });
  });

  test("with submodules has empty folders, and runs nothing", async () => {
    const file = join(scratch, "ran");
    const modules = `[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch% ${file}\n`;
    const entries: [string, string, string][] = [
      ["100644", ".gitmodules", evil.blob(modules)],
      ["160000", "s", commits.first],
    ];
    const commit = commitOf("module", entries);
    const files = await fetched({ url, reference: "module", commit });
    expect(Object.keys(files).sort()).toEqual([".gitmodules", "handler.js"]);
    expect(existsSync(file)).toBe(false);
    await expect(fetched({ url, reference: "module", commit, baseDir: "s" })).rejects.toThrow(
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
    await expect(fetched({ url, reference: "bomb", commit })).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringContaining("too many files"),
    });
    expect(process.memoryUsage().rss - memory).toBeLessThan(200 * 1024 ** 2);
  });

  test("with filters in its attributes runs none", async () => {
    const attributes = "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-16\n";
    const commit = commitOf("filter", [["100644", ".gitattributes", evil.blob(attributes)]]);
    expect(Object.keys(await fetched({ url, reference: "filter", commit })).sort()).toEqual([
      ".gitattributes",
      "handler.js",
    ]);
  });
});

describe.skipIf(noSshReason)(`over SSH${noSshReason && ` (${noSshReason})`}`, () => {
  const key = createKeyPair();
  const locked = createKeyPair("open sesame");
  const stranger = createKeyPair();
  let server: SshServer;
  let url = "";
  beforeAll(async () => {
    server = await SshServer.start([key, locked]);
    url = server.urlOf(repository.directory);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const keyOf = (pair: { privateKey: string }, more: object = {}): GitCredentials => ({
    type: "key",
    key: pair.privateKey,
    ...more,
  });

  test("a key opens", async () => {
    expect(await resolve("main", url, keyOf(key))).toBe(commits.second);
    const request = { url, credentials: keyOf(key), baseDir: "functions/hello" };
    expect(await fetched(request)).toEqual({ "handler.js": "hello one" });
  });

  test("a key with a passphrase opens with that", async () => {
    const credentials = keyOf(locked, { passphrase: "open sesame" });
    expect(await resolve("main", url, credentials)).toBe(commits.second);
  });

  test.each<[string, GitCredentials | undefined]>([
    ["without a key", undefined],
    ["another key", keyOf(stranger)],
    ["a key that is none", { type: "key", key: "nonsense\n" }],
    ["a wrong passphrase", keyOf(locked, { passphrase: "open barley" })],
    ["no passphrase", keyOf(locked)],
  ])("%s does not", async (_, credentials) =>
    expect(resolve("main", url, credentials)).rejects.toMatchObject({
      failure: "authorization",
      message: "Authorization to git server failed",
    }),
  );

  test("known_hosts with the server's key opens, with another's not", async () => {
    const right = keyOf(key, { knownHosts: `${server.hostKey}\n` });
    expect(await resolve("main", url, right)).toBe(commits.second);
    const [type, other] = stranger.publicKey.split(" ");
    const wrong = keyOf(key, { knownHosts: `[127.0.0.1]:${server.port} ${type} ${other}\n` });
    await expect(resolve("main", url, wrong)).rejects.toThrow("host key is not among");
    const empty = keyOf(key, { knownHosts: "example.com ssh-ed25519 AAAA\n" });
    await expect(resolve("main", url, empty)).rejects.toThrow("host key is not among");
  });
});

describe("a server that a tenant may not reach from here", () => {
  const denied =
    /^source\.gitRepository\.url leads to an address that Functions are not fetched from/;
  const asked = (url: string, hosts: readonly string[] = []) =>
    resolveCommit({ url, reference: "main" }, { allowed: hosts }).then(
      () => "answered",
      (error: Error) => error.message,
    );

  test.each([
    "http://127.0.0.1",
    "http://127.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0177.0.0.1",
    "http://127.255.255.254",
    "http://0.0.0.0",
    "http://localhost",
    "http://LOCALHOST.",
    "http://anything.localhost",
    "http://[::1]",
    "http://[::]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:7f00:1]",
    "http://[0:0:0:0:0:ffff:127.0.0.1]",
    "http://[::127.0.0.1]",
    "http://[64:ff9b::7f00:1]",
    "http://[2002:7f00:1::]",
    "http://169.254.169.254",
    "http://100.100.100.200",
    "http://[fd00:ec2::254]",
    "http://[::ffff:a9fe:a9fe]",
    "http://[fe80::1]",
    "https://127.0.0.1",
    "ssh://git@127.0.0.1",
    "ssh://git@2130706433",
    "ssh://git@[::1]",
    "ssh://git@[::ffff:127.0.0.1]",
    "ssh://git@localhost",
  ])("%s is refused before anything is connected to", async (base) => {
    const before = open.requests.length;
    const { port } = new URL(open.origin);
    expect(await asked(`${base}:${port}/shop.git`)).toMatch(denied);
    expect(open.requests).toHaveLength(before);
  });

  test("as an SSH address is refused, too", async () => {
    for (const host of ["127.0.0.1", "localhost", "2130706433"]) {
      expect(await asked(`git@${host}:shop.git`)).toMatch(denied);
    }
  });

  test("is every address that this machine has", async () => {
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    for (const { address } of own) {
      const host = address.includes(":") ? `[${address.replace(/%.*/, "")}]` : address;
      expect(await asked(`http://${host}:9/shop.git`)).toMatch(denied);
    }
  });

  test("cannot be reached by a redirect, from a server that may be asked", async () => {
    await using sender = await GitHttpServer.start({ root: repository.root, host: "127.0.0.3" });
    sender.intercept = (request, response) => {
      response.writeHead(302, { location: `${open.origin}${request.url}` }).end();
      return true;
    };
    const before = open.requests.length;
    const url = `${sender.origin}/shop.git`;
    expect(await asked(url, ["127.0.0.3"])).toMatch(denied);
    expect(open.requests).toHaveLength(before);
    const destination = join(scratch, "redirected");
    const request = { url, reference: "main", commit: commits.second, baseDir: "/", scratch };
    await expect(fetchSource({ ...request, destination, allowed: ["127.0.0.3"] })).rejects.toThrow(
      denied,
    );
    expect(open.requests).toHaveLength(before);
    // With both allowed, a repository that has moved is found.
    expect(await resolveCommit({ url, reference: "main" }, { allowed: ["127.0.0.0/8"] })).toBe(
      commits.second,
    );
    expect(Object.keys(await fetched({ url, allowed: ["127.0.0.0/8"] }))).toContain("handler.js");
  });

  test("that redirects without end, or to what is no repository, is given up", async () => {
    await using sender = await GitHttpServer.start({ root: repository.root });
    const location: { url: string } = { url: "" };
    sender.intercept = (request, response) => {
      response.writeHead(302, { location: location.url || `${request.url}` }).end();
      return true;
    };
    const url = `${sender.origin}/shop.git`;
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirects without end/);
    location.url = "/login";
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirects to what is not a repository/);
    location.url = "file:///etc/info/refs";
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirects to what is not a repository/);
  });

  test("is asked when the operator allows its name, its address or its network", async () => {
    const { port } = new URL(open.origin);
    expect(await asked(urlOf(open), ["127.0.0.1"])).toBe("answered");
    expect(await asked(urlOf(open), ["10.0.0.0/8", "127.0.0.0/8"])).toBe("answered");
    expect(await asked(`http://localhost:${port}/shop.git`, ["localhost"])).toBe("answered");
    expect(await asked(urlOf(open), ["10.0.0.0/8", "git.example"])).toMatch(denied);
  });

  test("says the same whether its port is closed, silent, broken or another program's", async () => {
    const say = (text: string | undefined) =>
      createServer((socket) => {
        socket.on("error", () => {});
        if (text !== undefined) socket.end(text);
      });
    const servers = [
      say(""),
      say("SSH-2.0-OpenSSH_9.2\r\n"),
      say("nonsense\r\n\r\n"),
      say("220 mail ESMTP\r\n"),
    ];
    const ports = await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve) =>
            server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)),
          ),
      ),
    );
    const messages = await Promise.all(
      ["http", "https", "ssh"].flatMap((scheme) =>
        [9, ...ports].map((port) => asked(`${scheme}://127.0.0.1:${port}/shop.git`, ["127.0.0.1"])),
      ),
    );
    for (const server of servers) server.close();
    expect([...new Set(messages)]).toEqual([unreachableServer]);
  });

  test("whose name changes its address meanwhile is asked where it was looked at", async () => {
    // The name has another address now than when it was resolved: Git is sent to the first.
    const repositoryUrl = parseRepositoryUrl(
      `http://git.invalid:${new URL(open.origin).port}/shop.git`,
    );
    const server = {
      host: "git.invalid",
      port: Number(new URL(open.origin).port),
      addresses: ["127.0.0.1"],
    };
    using session = new GitSession({ repository: repositoryUrl, server });
    const names = await session.run(["ls-remote", "--", repositoryUrl.url, "refs/heads/main"], {
      timeoutMs: 10_000,
    });
    expect(names).toContain(commits.second);
  });
});
