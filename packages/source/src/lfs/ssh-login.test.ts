/** Files of LFS in a repository with an SSH address: its server gives the login for the API. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificateFor } from "@spry/test-kit";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { fetchSource } from "../fetch-source.ts";
import { GitHttpServer } from "../testing/git-http-server.ts";
import { TestRepository } from "../testing/git-repository.ts";
import { LfsObjects } from "../testing/lfs-server.ts";
import { contentsOf } from "../testing/shop-servers.ts";
import { createKeyPair, noSshReason, SshServer } from "../testing/ssh-server.ts";

const app = new TestRepository("app");
const scratch = mkdtempSync(join(app.root, "scratch-"));
const { crt: cert, key: certificateKey } = await certificateFor("127.0.0.1");
const tls = { cert, key: certificateKey };
writeFileSync(join(scratch, "ca.pem"), tls.cert);
const key = createKeyPair();
const api = await GitHttpServer.start({ root: app.root, tls });
const ssh = noSshReason ? undefined : await SshServer.start([key]);
let objects = new LfsObjects();

beforeEach(() => {
  objects = new LfsObjects();
  objects.serve(api);
});
afterAll(async () => {
  await ssh?.[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
  app[Symbol.dispose]();
});

const token = "Bearer of-this-key";

/** A commit with one file in LFS, fetched over SSH. */
async function fetched(lfsLogin: string | object | undefined, lfsConfig?: string) {
  const { ssh: server } = { ssh: ssh as SshServer };
  server.lfsLogin = typeof lfsLogin === "object" ? JSON.stringify(lfsLogin) : lfsLogin;
  const files = {
    ".gitattributes": "*.bin filter=lfs\n",
    "a.bin": objects.add("content"),
    ...(lfsConfig !== undefined && { ".lfsconfig": lfsConfig }),
  };
  const entries = Object.entries(files).map(([name, content]): [string, string, string] => [
    "100644",
    name,
    app.blob(content),
  ]);
  const commit = app.commitTree(app.tree(entries), "main");
  const destination = mkdtempSync(join(scratch, "out-"));
  const { leftOut } = await fetchSource({
    url: server.urlOf(app.directory),
    reference: "main",
    commit,
    baseDir: "/",
    scratch,
    allowed: ["127.0.0.0/8"],
    credentials: { type: "key", key: key.privateKey },
    environment: { ...process.env, GIT_SSL_CAINFO: join(scratch, "ca.pem") },
    destination,
  });
  return { content: contentsOf(destination)["a.bin"], leftOut, asked: server.lfsQuestions.at(-1) };
}

describe.skipIf(noSshReason)(`over SSH${noSshReason && ` (${noSshReason})`}`, () => {
  test("the server's login opens the API that it names, and its objects", async () => {
    const login = { href: `${api.origin}/lfs`, header: { Authorization: token }, expires_in: 60 };
    const { content, leftOut, asked } = await fetched(login);
    expect([content, leftOut]).toEqual(["content", []]);
    expect(asked).toBe(`git-lfs-authenticate ${app.directory} download`);
    expect(objects.questions).toMatchObject([{ path: "/lfs/objects/batch", authorization: token }]);
    expect(objects.downloads).toEqual([[expect.any(String), token]]);
  });

  test("an object on another server is fetched without the login", async () => {
    await using other = await GitHttpServer.start({ root: app.root, tls });
    const moved = new LfsObjects();
    moved.add("content");
    moved.serve(other);
    objects.answer = (oid) => ({
      actions: { download: { href: `${other.origin}/objects/${oid}` } },
    });
    const { content } = await fetched({ href: api.origin, header: { Authorization: token } });
    expect([content, moved.downloads[0]?.[1]]).toEqual(["content", undefined]);
  });

  test("a login whose headers decide how a request is read is used without them", async () => {
    const header = { Authorization: token, Host: "evil.example", "Content-Length": "3" };
    expect((await fetched({ href: api.origin, header })).content).toBe("content");
  });

  test("an lfs.url with the SSH address of the same server is asked there", async () => {
    const elsewhere = `[lfs]\n\turl = ${ssh?.urlOf("/srv/assets.git")}\n`;
    const { content, asked } = await fetched({ href: api.origin }, elsewhere);
    expect([content, asked]).toEqual(["content", "git-lfs-authenticate /srv/assets.git download"]);
  });

  test.each<[string, string | object, string]>([
    [
      "to an address of metadata",
      { href: "http://169.254.169.254/x" },
      "its URL is not an https URL",
    ],
    ["without encryption", { href: "http://127.0.0.1:1/x" }, "its URL is not an https URL"],
    ["to a file", { href: "file:///etc/passwd" }, "has the scheme file"],
    ["to an internal address", { href: "https://169.254.169.254/x" }, "leads to an address"],
  ])(
    "a login %s is not used: the file stays a pointer, with a warning",
    async (_, login, reason) => {
      const { leftOut } = await fetched(login);
      expect(leftOut).toEqual([expect.stringContaining(reason)]);
      expect(objects.questions).toEqual([]);
    },
  );

  test("an lfs.url with the SSH address of another server is not asked", async () => {
    const { leftOut } = await fetched({}, "[lfs]\n\turl = ssh://git@other.example/x.git\n");
    expect(leftOut).toEqual([expect.stringContaining("an SSH address of another server")]);
  });

  test.each<[string, string | object | undefined]>([
    ["that does not know the command", undefined],
    ["whose answer is no JSON", "welcome to our server\n"],
    ["whose answer is null", "null"],
    ["whose answer is longer than 64 KiB", `{"href":"${"x".repeat(100_000)}"}`],
  ])("for a server %s the API is asked at its host's port of https", async (_, login) => {
    // Nothing listens there.
    await expect(fetched(login)).rejects.toThrow(
      '"a.bin" from LFS: the Git server cannot be reached',
    );
  });
});
