/** Git servers behind Services, whose names no name server knows and whose endpoints have ports of their own. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { unreachableServer } from "./git-error.ts";
import { type Endpoint, locateServer, type ServiceLookup } from "./git-server.ts";
import { resolveCommit } from "./resolve-commit.ts";
import { parseRepositoryUrl } from "./repository-url.ts";
import { ServiceRelay } from "./service-relay.ts";
import { basic, ShopServers } from "./testing/shop-servers.ts";
import { createKeyPair, noSshReason, SshServer } from "./testing/ssh-server.ts";

const name = "git.shop.svc.cluster.local";
const allowed = ["127.0.0.0/8"];
let shop: ShopServers;
beforeAll(async () => {
  shop = await ShopServers.start();
});
afterAll(() => shop[Symbol.asyncDispose]());

const endpointOf = (origin: string): Endpoint => ({
  host: "127.0.0.1",
  port: Number(new URL(origin).port),
});
const only =
  (endpoints: Endpoint[]): ServiceLookup =>
  async (host) =>
    host === name ? endpoints : undefined;
const question = { url: `http://${name}/shop.git`, reference: "main" };

describe("a Git server behind a Service", () => {
  test("is asked at its endpoint's port, by the Service's name", async () => {
    const services = only([endpointOf(shop.open.origin)]);
    // No proxy of the environment is asked, nor can it be ruled out by NO_PROXY.
    const environment = {
      PATH: process.env["PATH"],
      http_proxy: "http://127.0.0.1:9",
      no_proxy: "*",
    };
    expect(await resolveCommit(question, { allowed, services, environment })).toBe(
      shop.commits.second,
    );
  });

  test("gets the credentials that are for it", async () => {
    const services = only([endpointOf(shop.closed.origin)]);
    const { second } = shop.commits;
    const asked = { ...question, credentials: basic };
    expect(await resolveCommit(asked, { allowed, services })).toBe(second);
    await expect(resolveCommit(question, { allowed, services })).rejects.toThrow(
      "Authorization to git server failed",
    );
  });

  test.skipIf(noSshReason)(`is asked over SSH, too ${noSshReason}`, async () => {
    const key = createKeyPair();
    await using server = await SshServer.start([key]);
    const real = new URL(server.urlOf(shop.repository.directory));
    const services = only([{ host: "127.0.0.1", port: Number(real.port) }]);
    const url = `ssh://${real.username}@${name}${real.pathname}`;
    const credentials = { type: "key", key: key.privateKey } as const;
    expect(
      await resolveCommit({ url, reference: "main", credentials }, { allowed, services }),
    ).toBe(shop.commits.second);
  });

  test("is refused where its endpoint is an internal address", async () => {
    const services = only([endpointOf(shop.open.origin)]);
    const before = shop.open.requests.length;
    await expect(resolveCommit(question, { allowed: [], services })).rejects.toThrow(
      "leads to an address that Functions are not fetched from",
    );
    expect(shop.open.requests).toHaveLength(before);
    expect(await resolveCommit(question, { allowed: [name], services })).toBe(shop.commits.second);
  });

  test("is refused where the name that it stands for leads to an internal address", async () => {
    const { port } = endpointOf(shop.open.origin);
    const services = only([{ host: "localhost", port }]);
    const before = shop.open.requests.length;
    await expect(resolveCommit(question, { allowed: [], services })).rejects.toThrow(
      "leads to an address that Functions are not fetched from",
    );
    expect(shop.open.requests).toHaveLength(before);
  });

  test("that is another server's name is asked at the addresses that were looked at", async () => {
    const services = only([{ host: "localhost", port: 8080 }]);
    const repository = parseRepositoryUrl(question.url);
    const { endpoints } = await locateServer(repository, { allowed: [name], services });
    expect(endpoints).toEqual([
      { host: "127.0.0.1", port: 8080 },
      { host: "::1", port: 8080 },
    ]);
  });

  test.each<[string, Endpoint[]]>([
    ["has no endpoints", []],
    ["has one that is closed", [{ host: "127.0.0.1", port: 9 }]],
  ])("that %s cannot be reached", async (_, endpoints) => {
    const asked = resolveCommit(question, { allowed, services: only(endpoints) });
    await expect(asked).rejects.toThrow(unreachableServer);
  });
});

describe("the relay", () => {
  const greeting = [5, 2, 0, 1];
  const request = (host: string, port: number) => [
    5,
    1,
    0,
    3,
    host.length,
    ...Buffer.from(host),
    port >> 8,
    port & 255,
  ];
  test.each<[string, number[], number | undefined]>([
    ["another host", [...greeting, ...request("other.example", 80)], 2],
    ["another port", [...greeting, ...request(name, 22)], 2],
    ["an address", [...greeting, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80], 2],
    ["to listen", [...greeting, 5, 2, 0, 3, 1, 97, 0, 80], 2],
    ["less than a request, and ends", [5, 200, 0], undefined],
  ])("refuses a client that asks for %s", async (_, bytes, code) => {
    await using relay = await ServiceRelay.open({ host: name, port: 80 }, [
      endpointOf(shop.open.origin),
    ]);
    const socket = connect(Number(new URL(relay.url).port), "127.0.0.1");
    let seen = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => (seen = Buffer.concat([seen, chunk])));
    socket.end(Buffer.from(bytes));
    await once(socket, "close");
    expect(seen[3]).toBe(code);
  });
});
