/** Which servers are contacted, how they are proved to be the right ones, and logins over SSH. */
import { type AddressInfo, createServer } from "node:net";
import { ownAddresses } from "@spry/test-kit";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GitCredentials } from "./credentials.ts";
import { fetchSource } from "./fetch-source.ts";
import { unreachableServer } from "./git-error.ts";
import { GitSession } from "./git-session.ts";
import { parseRepositoryUrl } from "./repository-url.ts";
import { resolveCommit } from "./resolve-commit.ts";
import { GitHttpServer } from "./testing/git-http-server.ts";
import { ShopServers, urlOf } from "./testing/shop-servers.ts";
import { createKeyPair, noSshReason, SshServer } from "./testing/ssh-server.ts";

let shop: ShopServers;
beforeAll(async () => {
  shop = await ShopServers.start();
});
afterAll(() => shop[Symbol.asyncDispose]());

describe.skipIf(noSshReason)(`over SSH${noSshReason && ` (${noSshReason})`}`, () => {
  const key = createKeyPair();
  const locked = createKeyPair("open sesame");
  const stranger = createKeyPair();
  let server: SshServer;
  let url = "";
  beforeAll(async () => {
    server = await SshServer.start([key, locked]);
    url = server.urlOf(shop.repository.directory);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const keyOf = (pair: { privateKey: string }, more: object = {}): GitCredentials => ({
    type: "key",
    key: pair.privateKey,
    ...more,
  });

  test("a key opens", async () => {
    expect(await shop.resolve("main", url, keyOf(key))).toBe(shop.commits.second);
    const request = { url, credentials: keyOf(key), baseDir: "functions/hello" };
    expect(await shop.fetched(request)).toEqual({ "handler.js": "hello one" });
  });

  test("a key with a passphrase opens with that", async () => {
    const credentials = keyOf(locked, { passphrase: "open sesame" });
    expect(await shop.resolve("main", url, credentials)).toBe(shop.commits.second);
  });

  test.each<[string, GitCredentials | undefined]>([
    ["without a key", undefined],
    ["another key", keyOf(stranger)],
    ["a key that is none", { type: "key", key: "nonsense\n" }],
    ["a wrong passphrase", keyOf(locked, { passphrase: "open barley" })],
    ["no passphrase", keyOf(locked)],
  ])("%s does not", async (_, credentials) =>
    expect(shop.resolve("main", url, credentials)).rejects.toMatchObject({
      failure: "authorization",
      message: "Authorization to git server failed",
    }),
  );

  test("known_hosts with the server's key opens, with another's not", async () => {
    const right = keyOf(key, { knownHosts: `${server.hostKey}\n` });
    expect(await shop.resolve("main", url, right)).toBe(shop.commits.second);
    const [type, other] = stranger.publicKey.split(" ");
    const wrong = keyOf(key, { knownHosts: `[127.0.0.1]:${server.port} ${type} ${other}\n` });
    await expect(shop.resolve("main", url, wrong)).rejects.toThrow("host key is not among");
    const empty = keyOf(key, { knownHosts: "example.com ssh-ed25519 AAAA\n" });
    await expect(shop.resolve("main", url, empty)).rejects.toThrow("host key is not among");
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
    const before = shop.open.requests.length;
    const { port } = new URL(shop.open.origin);
    expect(await asked(`${base}:${port}/shop.git`)).toMatch(denied);
    expect(shop.open.requests).toHaveLength(before);
  });

  test("as an SSH address is refused, too", async () => {
    for (const host of ["127.0.0.1", "localhost", "2130706433"]) {
      expect(await asked(`git@${host}:shop.git`)).toMatch(denied);
    }
  });

  test("is every address that this machine has", async () => {
    for (const { address } of ownAddresses()) {
      const host = address.includes(":") ? `[${address.replace(/%.*/, "")}]` : address;
      expect(await asked(`http://${host}:9/shop.git`)).toMatch(denied);
    }
  });

  test("cannot be reached by a redirect, from a server that may be asked", async () => {
    await using sender = await GitHttpServer.start({
      root: shop.repository.root,
      host: "127.0.0.3",
    });
    sender.intercept = (request, response) => {
      response.writeHead(302, { location: `${shop.open.origin}${request.url}` }).end();
      return true;
    };
    const before = shop.open.requests.length;
    const url = `${sender.origin}/shop.git`;
    expect(await asked(url, ["127.0.0.3"])).toMatch(denied);
    expect(shop.open.requests).toHaveLength(before);
    const destination = join(shop.scratch, "redirected");
    const request = {
      url,
      reference: "main",
      commit: shop.commits.second,
      baseDir: "/",
      scratch: shop.scratch,
    };
    await expect(fetchSource({ ...request, destination, allowed: ["127.0.0.3"] })).rejects.toThrow(
      denied,
    );
    expect(shop.open.requests).toHaveLength(before);
    // With both allowed, a repository that has moved is found.
    expect(await resolveCommit({ url, reference: "main" }, { allowed: ["127.0.0.0/8"] })).toBe(
      shop.commits.second,
    );
    expect(Object.keys(await shop.fetched({ url, allowed: ["127.0.0.0/8"] }))).toContain(
      "handler.js",
    );
  });

  test("that redirects without end, or to what is no repository, is given up", async () => {
    await using sender = await GitHttpServer.start({ root: shop.repository.root });
    const location: { url: string } = { url: "" };
    sender.intercept = (request, response) => {
      response.writeHead(302, { location: location.url || `${request.url}` }).end();
      return true;
    };
    const url = `${sender.origin}/shop.git`;
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirected more than 5 times/);
    location.url = "/login";
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirected to a URL that is not a repository/);
    location.url = "file:///etc/info/refs";
    expect(await asked(url, ["127.0.0.1"])).toMatch(/redirected to a URL that is not a repository/);
  });

  test("is asked when the operator allows its name, its address or its network", async () => {
    const { port } = new URL(shop.open.origin);
    expect(await asked(urlOf(shop.open), ["127.0.0.1"])).toBe("answered");
    expect(await asked(urlOf(shop.open), ["10.0.0.0/8", "127.0.0.0/8"])).toBe("answered");
    expect(await asked(`http://localhost:${port}/shop.git`, ["localhost"])).toBe("answered");
    expect(await asked(urlOf(shop.open), ["10.0.0.0/8", "git.example"])).toMatch(denied);
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
      `http://git.invalid:${new URL(shop.open.origin).port}/shop.git`,
    );
    const server = {
      host: "git.invalid",
      port: Number(new URL(shop.open.origin).port),
      addresses: ["127.0.0.1"],
    };
    using session = new GitSession({ repository: repositoryUrl, server });
    const names = await session.run(["ls-remote", "--", repositoryUrl.url, "refs/heads/main"], {
      timeoutMs: 10_000,
    });
    expect(names).toContain(shop.commits.second);
  });
});
