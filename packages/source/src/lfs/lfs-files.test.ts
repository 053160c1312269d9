/** Files that Git LFS keeps: what comes, what is left out with a sentence, and what fails. */
import { mkdtempSync, statSync, symlinkSync } from "node:fs";
import { type ServerResponse } from "node:http";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { fetchSource, type FetchRequest } from "../fetch-source.ts";
import { GitHttpServer } from "../testing/git-http-server.ts";
import { TestRepository } from "../testing/git-repository.ts";
import { LfsObjects, pointerTo } from "../testing/lfs-server.ts";
import { contentsOf, login } from "../testing/shop-servers.ts";

type Entry = [mode: string, name: string, id: string];

const app = new TestRepository("app");
const other = new TestRepository("other");
const server = await GitHttpServer.start({ root: app.root });
const closed = await GitHttpServer.start({ root: app.root, login });
symlinkSync(other.directory, join(app.root, "other.git"));
const scratch = mkdtempSync(join(app.root, "scratch-"));
let objects = new LfsObjects();

beforeEach(() => {
  objects = new LfsObjects();
  objects.serve(server);
  objects.serve(closed);
});
afterAll(async () => {
  for (const each of [server, closed]) await each[Symbol.asyncDispose]();
  for (const each of [app, other]) each[Symbol.dispose]();
});

const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
const zeros = "0".repeat(64);

/** Of files, with these attributes. */
function commitOf(files: Record<string, string>, more: Entry[] = [], repository = app): string {
  const all = { ".gitattributes": attributes, "handler.js": "handler", ...files };
  const folders = new Map<string, Entry[]>();
  const entries: Entry[] = [...more];
  for (const [path, content] of Object.entries(all)) {
    const [folder, name] = path.includes("/") ? path.split("/") : [undefined, path];
    const entry: Entry = [
      name?.startsWith("run") ? "100755" : "100644",
      name ?? "",
      repository.blob(content),
    ];
    if (folder === undefined) entries.push(entry);
    else folders.set(folder, [...(folders.get(folder) ?? []), entry]);
  }
  for (const [name, below] of folders) entries.push(["40000", name, repository.tree(below)]);
  return repository.commitTree(repository.tree(entries), "main");
}

async function fetched(commit: string, request: Partial<FetchRequest> = {}) {
  const destination = mkdtempSync(join(scratch, "out-"));
  const lines: string[] = [];
  const { leftOut } = await fetchSource({
    url: `${server.origin}/app.git`,
    reference: "main",
    commit,
    baseDir: "/",
    scratch,
    allowed: ["127.0.0.0/8"],
    report: (line) => lines.push(line),
    ...request,
    destination,
  });
  return { destination, files: contentsOf(destination), leftOut, lines };
}

describe("a file in LFS", () => {
  test("comes in place of its pointer, once for all its paths, and may be run", async () => {
    const pointer = objects.add("content");
    const commit = commitOf({
      "a.bin": pointer,
      "models/run.bin": pointer,
      "b.bin": objects.add("b"),
    });
    const { files, leftOut, destination } = await fetched(commit);
    expect(leftOut).toEqual([]);
    expect(files).toMatchObject({ "a.bin": "content", "models/run.bin": "content", "b.bin": "b" });
    expect(statSync(join(destination, "models/run.bin")).mode & 0o777).toBe(0o755);
    expect(statSync(join(destination, "a.bin")).mode & 0o777).toBe(0o644);
    expect(objects.downloads.length).toBe(2);
    expect(objects.questions).toMatchObject([
      { path: "/app.git/info/lfs/objects/batch", body: { operation: "download" } },
    ]);
    expect(objects.questions[0]?.body.objects.length).toBe(2);
  });

  test("comes into a folder, whose attributes are those above it", async () => {
    const commit = commitOf({ "models/a.bin": objects.add("content"), "b.bin": objects.add("b") });
    const { files } = await fetched(commit, { baseDir: "models" });
    expect(files).toEqual({ "a.bin": "content" });
    expect(objects.downloads.length).toBe(1);
  });

  test("comes with a submodule, from the server of that", async () => {
    const inOther = commitOf({ "a.bin": objects.add("of the submodule") }, [], other);
    const modules = '[submodule "s"]\n\tpath = s\n\turl = ../other.git\n';
    const commit = commitOf({ ".gitmodules": modules }, [["160000", "s", inOther]]);
    const { files, leftOut } = await fetched(commit);
    expect([files["s/a.bin"], leftOut]).toEqual(["of the submodule", []]);
    expect(objects.questions[0]?.path).toBe("/other.git/info/lfs/objects/batch");
  });

  test("is asked for with the repository's credentials, and where they say nothing else", async () => {
    const commit = commitOf({ "a.bin": objects.add("a"), "b.bin": objects.add("b") });
    const request = {
      url: `${closed.origin}/app.git`,
      credentials: { type: "basic", ...login } as const,
    };
    const basic = `Basic ${btoa(`${login.username}:${login.password}`)}`;
    await fetched(commit, request);
    expect(objects.questions[0]?.authorization).toBe(basic);
    expect(objects.downloads.map(([, shown]) => shown)).toEqual([basic, basic]);
    objects.downloads.length = 0;
    objects.answer = (oid) => ({
      actions: {
        download: {
          href: `${server.origin}/objects/${oid}`,
          header: { Authorization: "Bearer theirs", Host: "evil.example" },
        },
      },
    });
    await fetched(commit, request);
    expect(objects.downloads.map(([, shown]) => shown)).toEqual(["Bearer theirs", "Bearer theirs"]);
    objects.downloads.length = 0;
    objects.answer = (oid) => ({
      actions: { download: { href: `${server.origin}/objects/${oid}` } },
    });
    await fetched(commit, request);
    expect(objects.downloads.map(([, shown]) => shown)).toEqual([undefined, undefined]);
  });

  test("is asked for where .lfsconfig says, without the repository's credentials", async () => {
    const config = `[lfs]\n\turl = ${server.origin}/elsewhere\n`;
    const commit = commitOf({ "a.bin": objects.add("a"), ".lfsconfig": config });
    const { files } = await fetched(commit, {
      url: `${closed.origin}/app.git`,
      credentials: { type: "basic", ...login },
    });
    expect(files["a.bin"]).toBe("a");
    expect(objects.questions).toMatchObject([
      { path: "/elsewhere/objects/batch", authorization: undefined },
    ]);
  });

  test("is downloaded from where it is redirected to, without the headers for another origin", async () => {
    const commit = commitOf({ "a.bin": objects.add("a") });
    const seen: (string | undefined)[] = [];
    objects.answer = (oid) => ({
      actions: {
        download: { href: `${server.origin}/moved/${oid}`, header: { authorization: "secret" } },
      },
    });
    objects.intercept = (request, response) => {
      const oid = /^\/moved\/(\w+)$/.exec(request.url ?? "")?.[1];
      if (oid === undefined) return false;
      seen.push(request.headers.authorization);
      response.writeHead(307, { location: `${closed.origin}/objects/${oid}` }).end();
      return true;
    };
    const { files } = await fetched(commit);
    expect(files["a.bin"]).toBe("a");
    expect([seen, objects.downloads[0]?.[1]]).toEqual([["secret"], undefined]);
  });
});

describe("what only looks like a pointer stays as it is", () => {
  test.each<[what: string, path: string, content: string]>([
    ["without the attribute", "a.txt", pointerTo(zeros, 5)],
    ["with other text", "a.bin", `about pointers:\n${pointerTo(zeros, 5)}`],
    ["with the attribute taken away", "plain.bin", pointerTo(zeros, 5)],
  ])("%s", async (_, path, content) => {
    const more = `${attributes}plain.bin -filter\n`;
    const { files, leftOut } = await fetched(commitOf({ [path]: content, ".gitattributes": more }));
    expect(files[path]).toBe(content.slice(0, 100));
    expect([leftOut, objects.questions]).toEqual([[], []]);
  });

  test("with extensions, which is said", async () => {
    const pointer = pointerTo(zeros, 5).replace("\noid", `\next-0-x sha256:${zeros}\noid`);
    const { leftOut } = await fetched(commitOf({ "a.bin": pointer }));
    expect(leftOut).toEqual([
      '"a.bin" is a pointer to LFS, whose content is left out: it has extensions, or an unknown form',
    ]);
  });
});

describe("a file in LFS stays a pointer, with a warning,", () => {
  const answering =
    (status: number, text = "") =>
    (response: ServerResponse) =>
      void response.writeHead(status).end(text);

  test.each<[when: string, answer: (response: ServerResponse) => void, reason: string]>([
    ["of a server without the API", answering(404), "does not offer the LFS API (HTTP 404)"],
    ["of one that does not implement it", answering(501), "does not offer the LFS API (HTTP 501)"],
    ["of a page for people", answering(200, "<html>"), "does not offer the LFS API"],
    ["of another list", answering(200, '{"objects":{}}'), "does not offer the LFS API"],
    ["without a login", answering(401), "the LFS server wants other credentials, or any"],
  ])("%s", async (_, answer, reason) => {
    const pointer = objects.add("content");
    objects.intercept = (request, response) => {
      if (!request.url?.endsWith("/batch")) return false;
      answer(response);
      return true;
    };
    const { files, leftOut, lines } = await fetched(commitOf({ "a.bin": pointer }));
    expect(files["a.bin"]).toBe(pointer.slice(0, 100));
    expect(leftOut).toEqual([
      expect.stringMatching(/^"a\.bin" is a pointer to LFS, whose content is left out: /),
    ]);
    expect(leftOut[0]).toContain(reason);
    expect(lines).toContain(`warning: ${leftOut[0]}`);
  });

  test("that the server does not have, and the others come", async () => {
    const commit = commitOf({ "a.bin": pointerTo(zeros, 5), "b.bin": objects.add("b") });
    const { files, leftOut } = await fetched(commit);
    expect(files["b.bin"]).toBe("b");
    expect(leftOut).toEqual([
      '"a.bin" is a pointer to LFS, whose content is left out: the server does not have it (404)',
    ]);
  });

  test.each<[where: string, href: string, reason: string]>([
    ["at the address of metadata", "http://169.254.169.254/x", "its URL leads to an address"],
    [
      "at that address in another form",
      "http://[::ffff:a9fe:a9fe]/x",
      "its URL leads to an address",
    ],
    ["of another scheme", "file:///etc/passwd", "has the scheme file"],
    ["by ssh", "ssh://git@h/x", "its URL is not an https URL"],
    ["that is no URL", "http://", "is neither an https URL nor an SSH address"],
  ])("whose content is %s", async (_, href, reason) => {
    objects.answer = () => ({ actions: { download: { href } } });
    const { leftOut } = await fetched(commitOf({ "a.bin": objects.add("a") }));
    expect(leftOut).toEqual([expect.stringContaining(reason)]);
  });

  test("whose content is behind a redirect to the address of metadata", async () => {
    const commit = commitOf({ "a.bin": objects.add("a") });
    objects.intercept = (request, response) => {
      if (!request.url?.startsWith("/objects/")) return false;
      response.writeHead(302, { location: "http://169.254.169.254/x" }).end();
      return true;
    };
    expect((await fetched(commit)).leftOut).toEqual([
      expect.stringContaining("leads to an address"),
    ]);
  });

  test("where .lfsconfig leads to the address of metadata", async () => {
    const config = "[lfs]\n\turl = http://169.254.169.254/x\n";
    const { leftOut } = await fetched(
      commitOf({ "a.bin": objects.add("a"), ".lfsconfig": config }),
    );
    expect(leftOut).toEqual([expect.stringContaining("leads to an address")]);
  });
});

describe("a build fails", () => {
  test("of more in LFS than a source may have, before any of it is sent", async () => {
    const commit = commitOf({
      "big.bin": pointerTo(zeros, 250_000_000),
      "b.bin": objects.add("b"),
    });
    await expect(fetched(commit)).rejects.toMatchObject({
      failure: "unrecoverable",
      message:
        'with "big.bin" (250.0 MB) and 1 more of LFS the source has 250.0 MB: at most 10000 files and 100.0 MB are possible',
    });
    expect(objects.questions).toEqual([]);
  });

  test.each<[what: string, content: string, message: string]>([
    ["other content", "nothing", "what its server sent is not what its pointer names"],
    ["less content", "less", "what its server sent is not what its pointer names"],
    ["more content", "more than was asked for", "it is larger than its pointer says"],
  ])("of %s than the pointer says", async (_, content, message) => {
    const commit = commitOf({ "a.bin": objects.add("content") });
    objects.intercept = (request, response) => {
      if (!request.url?.startsWith("/objects/")) return false;
      response.end(content);
      return true;
    };
    await expect(fetched(commit)).rejects.toMatchObject({
      failure: "unrecoverable",
      message: `LFS file "a.bin": ${message}`,
    });
  });

  test.each([503, 429])("for now, while the server answers %d", async (status) => {
    const commit = commitOf({ "a.bin": objects.add("content") });
    objects.intercept = (request, response) => {
      if (!request.url?.endsWith("/batch")) return false;
      response.writeHead(status).end();
      return true;
    };
    await expect(fetched(commit)).rejects.toMatchObject({
      failure: "temporary",
      message: `"a.bin" from LFS: the LFS server answered ${status}`,
    });
  });
});
