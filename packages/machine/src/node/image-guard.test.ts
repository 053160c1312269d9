/**
 * The author of a Pod chooses the registry that the node agent sends requests to. The node agent must not reach, on behalf of the Pod,
 * what the Pod itself could not reach.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, type LookupFunction } from "node:net";
import { type HostPort, ManualClock, OutboundGuard, resources, silentLogger } from "@spry/kube";
import { ownAddresses } from "@spry/test-kit";
import { expect, onTestFinished, test } from "vitest";
import { eventually, startMachine, startRegistry, temporaryDirectory } from "../testing.ts";
import { ImageStore } from "./images.ts";

const secret = "s3cr3t-of-the-machine";

/** A program of the machine that counts its connections, and answers with a secret. */
async function listening(
  answer: (response: ServerResponse) => void = (response) =>
    response.writeHead(200, { "docker-content-digest": secret, etag: secret }).end(secret),
  { host = "0.0.0.0", port = 0 } = {},
) {
  let asked = 0;
  const server = createServer((_request, response) => answer(response));
  server.on("connection", () => asked++);
  await once(server.listen(port, host), "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, asked: () => asked };
}

/** Names that resolve as a row has it, one answer after the other. */
const resolving = (...answers: string[]) =>
  ((_name, _options, callback) => {
    const address = (answers.length > 1 ? answers.shift() : answers[0]) ?? "";
    callback(null, [{ address, family: address.includes(":") ? 6 : 4 }] as never);
  }) as LookupFunction;

async function storeWith(options: { allowed?: HostPort[]; lookup?: LookupFunction } = {}) {
  const guard = new OutboundGuard({ allowPrivate: true, ...options });
  const dir = temporaryDirectory();
  const store = new ImageStore({
    dir,
    mirrors: {},
    guard,
    clock: new ManualClock(),
    log: silentLogger,
  });
  await store.open();
  return (name: string) =>
    store.pull(name, { namespaceUid: "shop" }).then(
      () => "pulled",
      (error: unknown) => (error as Error).message,
    );
}

const refused = (host: string) =>
  `${host} leads to an address that no image is pulled from: loopback, this machine's own, a Pod's of another namespace, link-local or reserved; ` +
  "the operator can allow a registry on this machine by spry up --allow-loopback HOST:PORT";

const own = ownAddresses().map(({ address }) =>
  address.includes(":") ? `[${address.replace(/%.*/, "")}]` : address,
);

const hosts = [
  ...new Set(["127.0.0.1", "localhost", "a.localhost", "127.8.9.1", "[::1]", "[::ffff:7f00:1]", ...own]),
  ..."0x7f.0.0.1 127.1 0177.0.0.1 2130706433 0.0.0.0 [::] 169.254.169.254 100.100.100.200".split(" "),
  ..."[fd00:ec2::254] [fe80::1] [::ffff:a9fe:a9fe] [64:ff9b::7f00:1] [2002:7f00:1::]".split(" "),
]; // prettier-ignore

test.each(hosts)("an image at %s is refused in the same words, whether something listens there or not", async (host) => {
  const { port, asked } = await listening();
  const pull = await storeWith();
  expect(await pull(`${host}:${port}/a/b:1`)).toBe(refused(`${host}:${port}`));
  expect(await pull(`${host}:1/a/b:1`)).toBe(refused(`${host}:1`));
  expect(asked()).toBe(0);
}); // prettier-ignore

test.each([["127.0.0.1"], ["::1"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["0.0.0.0"]])(
  "a name that resolves to %s is refused",
  async (address) => {
    const { port, asked } = await listening();
    const pull = await storeWith({ lookup: resolving(address) });
    expect(await pull(`registry.example:${port}/a:1`)).toBe(refused(`registry.example:${port}`));
    expect(asked()).toBe(0);
  },
);

test("a name that resolves to the machine after it has been checked is not asked there", async () => {
  const busy = await listening(
    (response) => response.writeHead(503, { connection: "close", "retry-after": "0" }).end(),
    { host: "127.0.0.2" },
  );
  const { port } = busy;
  const { asked } = await listening(undefined, { host: "127.0.0.1", port });
  // The second attempt resolves the name again.
  const lookup = resolving("127.0.0.2", "127.0.0.1");
  const pull = await storeWith({ allowed: [{ host: "127.0.0.2", port }], lookup });
  expect(await pull(`registry.example:${port}/a:1`)).toBe(refused(`registry.example:${port}`));
  expect([busy.asked(), asked()]).toEqual([1, 0]);
});

const ways: [string, (to: string) => [number, Record<string, string>]][] = [
  ["by a redirect", (to) => [307, { location: `${to}/shutdown` }]],
  ["for a token", (to) => [401, { "www-authenticate": `Bearer realm="${to}/token",service="x"` }]],
];

test.each(ways)("a registry that is allowed leads to nothing else on the machine: %s", async (_, way) => {
  const { port: secretPort, asked } = await listening();
  const places = ["127.0.0.1", "localhost", "a.localhost", "[::ffff:127.0.0.1]", ...own];
  for (const place of [...places, "169.254.169.254"]) {
    const registry = await listening((response) =>
      response.writeHead(...way(`http://${place}:${secretPort}`)).end(),
    );
    const host = `127.0.0.1:${registry.port}`;
    const pull = await storeWith({ allowed: [{ host: "127.0.0.1", port: registry.port }] });
    expect(await pull(`${host}/a:1`)).not.toContain(String(secretPort));
    expect(registry.asked()).toBeGreaterThan(0);
  }
  expect(asked()).toBe(0);
}); // prettier-ignore

const manifest = (more: object) =>
  JSON.stringify({ schemaVersion: 2, layers: [], config: {}, ...more });
const answers: [what: string, status: number, body: string, headers?: Record<string, string>][] = [
  ["text", 200, secret],
  ["text with an error", 500, secret],
  ["JSON", 200, JSON.stringify({ password: secret })],
  ["a JSON text", 200, JSON.stringify(secret)],
  ["null", 200, "null"],
  ["a registry's error in its own words", 404, JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: secret }] })],
  ["an error of a code of its own", 403, JSON.stringify({ errors: [{ code: secret, message: secret }] })],
  ["an error of a code that is an object", 403, JSON.stringify({ errors: [{ code: [secret] }] })],
  ["a strange status", 418, secret],
  ["a redirect", 302, "", { location: `https://${secret}.example.invalid/x` }],
  ["a redirect to what is not a URL", 302, "", { location: `http://[${secret}` }],
  ["a redirect of another scheme", 302, "", { location: `ftp://${secret}/` }],
  ["a realm elsewhere", 401, "", { "www-authenticate": `Bearer realm="https://${secret}.example.invalid/"` }],
  ["a realm without TLS", 401, "", { "www-authenticate": `Bearer realm="http://${secret}.example.invalid/"` }],
  ["a realm that is not a URL", 401, "", { "www-authenticate": `Bearer realm="${secret}"` }],
  ["a manifest with a digest of its own", 200, manifest({ config: { digest: secret, size: 2 } })],
  ["a manifest with a path for a digest", 200, manifest({ config: { digest: `../${secret}`, size: 2 } })],
  ["a manifest whose layers are text", 200, manifest({ layers: secret })],
  ["an index with a digest of its own", 200, JSON.stringify({ manifests: [{ digest: secret, size: 1 }] })],
  ["an index of another platform", 200, JSON.stringify({ manifests: [{ platform: { os: secret } }] })],
  ["an index that is text", 200, JSON.stringify({ manifests: secret })],
]; // prettier-ignore

test.each(answers)("nothing of a registry's answer is shown: %s", async (_, status, body, headers = {}) => {
  const { port, asked } = await listening((response) =>
    response.writeHead(status, { ...headers, "retry-after": "0", "x-secret": secret }).end(body),
  );
  const pull = await storeWith({ allowed: [{ host: "127.0.0.1", port }] });
  const message = await pull(`127.0.0.1:${port}/a:1`);
  expect(asked()).toBeGreaterThan(0);
  expect(message).not.toContain(secret);
  expect(message).toContain(`127.0.0.1:${port}/a`);
  expect(message.length).toBeLessThan(300);
}, 20_000); // prettier-ignore

test("a registry's own code of the specification is shown, and so is what clients can do something about", async () => {
  const { port } = await listening((response) =>
    response.writeHead(404).end(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN" }] })),
  );
  const pull = await storeWith({ allowed: [{ host: "127.0.0.1", port }] });
  expect(await pull(`127.0.0.1:${port}/a:1`)).toBe(
    `127.0.0.1:${port}/a: the registry answered 404 MANIFEST_UNKNOWN`,
  );
});

test("an image of a registry on this machine that the operator allows is pulled", async () => {
  const registry = await startRegistry();
  const image = await registry.push("web:1", { app: "one" });
  const [{ url } = { url: "" }] = Object.values(registry.mirrors);
  const port = Number(new URL(url).port);
  const pull = await storeWith({ allowed: [{ host: "127.0.0.1", port }] });
  const name = image.replace(/^[^/]+/, `127.0.0.1:${port}`);
  expect(await pull(name)).toBe("pulled");
  expect(await pull(name.replace("127.0.0.1", "127.0.0.2"))).toMatch(/^127.0.0.2:\d+ leads to/);
});

test("a Pod of such an image says so in its status and its Events, and waits", async () => {
  const { client } = await startMachine();
  const { port, asked } = await listening();
  const namespace = "default";
  const image = `127.0.0.1:${port}/a:1`;
  const spec = { containers: [{ name: "main", image }] };
  await client.create(resources.pods, { metadata: { namespace, name: "curious" }, spec });
  const waiting = () =>
    client
      .get(resources.pods, { namespace, name: "curious" })
      .then(({ status }) => status?.containerStatuses?.[0]?.state?.waiting);
  await eventually(async () => expect((await waiting())?.reason).toBe("ImagePullBackOff"));
  expect((await waiting())?.message).toContain(refused(`127.0.0.1:${port}`));
  const text = await eventually(async () => {
    const { items } = await client.list(resources.events, { namespace });
    const all = items.map(({ message }) => message).join("\n");
    expect(all).toContain("leads to an address that no image is pulled from");
    return all;
  });
  expect(text).not.toContain(secret);
  expect(asked()).toBe(0);
});
