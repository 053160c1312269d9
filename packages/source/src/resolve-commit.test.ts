/** What real servers say of a reference, over HTTP, and what that leaves behind. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GitCredentials } from "./credentials.ts";
import { removeAbandonedSessions } from "./git-session.ts";
import { resolveCommit } from "./resolve-commit.ts";
import { GitHttpServer } from "./testing/git-http-server.ts";
import { basic, login, ShopServers, urlOf } from "./testing/shop-servers.ts";

let shop: ShopServers;
beforeAll(async () => {
  shop = await ShopServers.start();
});
afterAll(() => shop[Symbol.asyncDispose]());

describe("a reference is", () => {
  test.each([
    ["a branch", "main", () => shop.commits.second],
    ["a branch with slashes", "feature/a/b", () => shop.commits.feature],
    ["a branch by its full name", "refs/heads/main", () => shop.commits.second],
    ["a light tag", "light", () => shop.commits.first],
    ["an annotated tag, as its commit", "v1.0", () => shop.commits.first],
    [
      "a tag by its full name, even with a branch of the same name",
      "refs/tags/main",
      () => shop.commits.first,
    ],
    ["anything by its full name", "refs/pull/7/head", () => shop.commits.feature],
  ])("%s: %s", async (_, reference, commit) =>
    expect(await shop.resolve(reference)).toBe(commit()),
  );

  test("the same on a server that knows only the old protocol", async () => {
    expect(await shop.resolve("feature/a/b", urlOf(shop.old))).toBe(shop.commits.feature);
    expect(await shop.resolve("v1.0", urlOf(shop.old))).toBe(shop.commits.first);
  });

  test("a full commit id, without a request", async () => {
    const before = shop.open.requests.length;
    expect(await shop.resolve("A".repeat(40))).toBe("a".repeat(40));
    expect(shop.open.requests).toHaveLength(before);
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
    expect(shop.resolve(reference)).rejects.toMatchObject({
      failure: "unrecoverable",
      message: expect.stringMatching(/^reference (not found|".*" is not a valid name in Git)/s),
    }),
  );

  test("asked for with few bytes, however large the repository", async () => {
    const before = shop.open.sentBytes;
    await shop.resolve("main");
    expect(shop.open.sentBytes - before).toBeLessThan(3000);
  });
});

describe("over HTTP, the server", () => {
  test("lets in who has username and password, whatever signs are in them", async () => {
    expect(await shop.resolve("main", urlOf(shop.closed), basic)).toBe(shop.commits.second);
  });

  test.each<[string, GitCredentials | undefined]>([
    ["nobody", undefined],
    ["a wrong password", { ...basic, password: "wrong" }],
    ["a wrong user", { ...basic, username: "eve" }],
  ])("refuses %s", async (_, credentials) => {
    const error = { failure: "authorization", message: "Authorization to git server failed" };
    await expect(shop.resolve("main", urlOf(shop.closed), credentials)).rejects.toMatchObject(
      error,
    );
  });

  test.each([
    ["that has no such repository", () => `${shop.open.origin}/none.git`, /not found/],
    [
      "that is not there",
      () => "http://127.0.0.1:9/shop.git",
      /^the Git server cannot be reached, or what answers there is not a Git server/,
    ],
    ["that has no address", () => "https://git.invalid/shop.git", /Could not resolve host/],
  ])("%s is tried again", async (_, url, message) =>
    expect(shop.resolve("main", url())).rejects.toMatchObject({
      failure: "temporary",
      message: expect.stringMatching(message),
    }),
  );

  test("learns no password by sending us elsewhere", async () => {
    const seen: (string | undefined)[] = [];
    await using trap = await GitHttpServer.start({ root: shop.repository.root, login });
    trap.intercept = (request) => {
      seen.push(request.headers.authorization);
      return false;
    };
    await using shunt = await GitHttpServer.start({ root: shop.repository.root });
    shunt.intercept = (request, response) => {
      response.writeHead(302, { location: `${trap.origin}${request.url}` }).end();
      return true;
    };
    const error = { failure: "authorization" };
    await expect(shop.resolve("main", urlOf(shunt), basic)).rejects.toMatchObject(error);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter(Boolean)).toEqual([]);
  });

  test("cannot make an error show the password that it got", async () => {
    await using echo = await GitHttpServer.start({ root: shop.repository.root, login });
    echo.intercept = (request, response) => {
      if (!request.headers.authorization) return false;
      response.writeHead(500, { "content-type": "text/plain" });
      response.end(`wrong: ${login.password} ${request.headers.authorization}\n`);
      return true;
    };
    const error = await shop
      .resolve("main", urlOf(echo), basic)
      .catch((each: unknown) => each as Error);
    expect(String(error)).toContain("wrong: *** Basic ***");
    expect(String(error)).not.toContain(login.password);
  });

  test.skipIf(process.platform !== "linux")(
    "that lists names without end is given up before it fills the memory",
    async () => {
      const line = `${shop.commits.first} refs/heads/${"x".repeat(200)}`;
      let sent = 0;
      shop.open.intercept = (request, response) => {
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
      const failure = await shop.resolve("main").catch((error: unknown) => error);
      shop.open.intercept = undefined;
      expect(failure).toMatchObject({ failure: "temporary" });
      expect((failure as Error).message).toMatch(/exceeded the memory limit/);
      // 512 MiB of memory is about as much on the wire.
      expect(sent * line.length).toBeLessThan(2 * 1024 ** 3);
    },
    60_000,
  );

  test("that sends nothing is given up with all of Git's processes", async () => {
    await using silent = await GitHttpServer.start({ root: shop.repository.root });
    silent.intercept = () => true;
    const stop = new AbortController();
    const question = { url: urlOf(silent), reference: "main" };
    const answer = resolveCommit(question, { signal: stop.signal, allowed: ["127.0.0.0/8"] });
    await expect.poll(() => silent.requests.length).toBe(1);
    stop.abort();
    await expect(answer).rejects.toThrow("git was stopped");
  });
});

describe("nothing is left on disk", () => {
  test("by a process that was killed", () => {
    const dead = execFileSync("sh", ["-c", "echo $$"]).toString().trim();
    const left = mkdtempSync(join(shop.scratch, `spry-git-${dead}-`));
    const used = mkdtempSync(join(shop.scratch, `spry-git-${process.pid}-`));
    const other = mkdtempSync(join(shop.scratch, "spry-git-"));
    removeAbandonedSessions(shop.scratch);
    expect([left, used, other].map((each) => existsSync(each))).toEqual([false, true, true]);
  });

  test("by a question that is answered, and by one that fails", async () => {
    const prefix = `spry-git-${process.pid}-`;
    const ours = () => readdirSync(tmpdir()).filter((name) => name.startsWith(prefix));
    const before = ours();
    await shop.resolve("main", urlOf(shop.closed), basic);
    await shop.resolve("main", urlOf(shop.closed)).catch(() => {});
    expect(ours().filter((name) => !before.includes(name))).toEqual([]);
  });
});
