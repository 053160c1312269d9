/**
 * Attacks of unknown clients at the host of an APIRule, one in each row: to pass as another user, to reach another path or host,
 * to hide one request in another.
 */
import { createHmac, generateKeyPairSync } from "node:crypto";
import { connect } from "node:tls";
import { domainMappings, knativeLabels, labels } from "@spry/function";
import { certificateFor } from "@spry/test-kit";
import { exportSPKI, importJWK, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { bodyOf, type TestPod } from "./testing/bench.ts";
import {
  type ExposureBench,
  plain,
  secured,
  startExposureBench,
  startIssuer,
} from "./testing/exposure.ts";

const host = "dice.example.com";
const hosts = ["*.example.com"];
let bench: ExposureBench;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let pod: TestPod;
/** Of a Knative Route, which a DomainMapping gives the host of an APIRule. */
let mapped: TestPod;

beforeAll(async () => {
  [bench, issuer] = await Promise.all([
    startExposureBench({ https: { port: 0 }, headTimeoutMs: 500, withKnative: true }),
    startIssuer(),
  ]);
  pod = await bench.pod(async (request, response) => {
    await bodyOf(request);
    response.end("in");
  });
  await bench.service();
  await bench.endpoints([pod]);
  // As that of a Revision: it has the labels of its Function, too.
  const { functionName } = labels;
  const ofRevision = { [functionName]: "hello", [knativeLabels.serviceType]: "Private" };
  await bench.service("hello-00001-private", ofRevision);
  await bench.endpoints([pod], [], "hello-00001-private");
  await bench.gatewayOf("kyma-gateway", [plain(hosts), secured(hosts, "web")]);
  await bench.certificates({ "kyma-system.web": await certificateFor("*.example.com") });
  const authentications = [issuer.authentication];
  const authorizations = [{ audiences: ["shop"] }];
  await bench.apiRule("dice", {
    rules: [
      { path: "/public/{**}", methods: ["GET"], noAuth: true },
      { path: "/{**}", methods: ["GET", "POST"], jwt: { authentications, authorizations } },
    ],
  });
  mapped = await bench.pod((_, response) => response.end("mapped"));
  await bench.knative.revision("a");
  await bench.revisionPods("a", [mapped]);
  await bench.knative.route("stolen", [{ revisionName: "a", percent: 100 }]);
  const metadata = { name: host, namespace: "default" };
  const spec = { ref: { kind: "Service", name: "stolen" } };
  await bench.client.create(domainMappings, { metadata, spec });
  const conditions = ["DomainClaimed", "ReferenceResolved"].map((type) => ({
    type,
    status: "True" as const,
  }));
  await bench.client.patch(
    domainMappings,
    metadata,
    { status: { conditions } },
    { subresource: "status" },
  );
  await bench.heard();
});
afterEach(() => {
  for (const each of [pod, mapped]) each.seen.length = 0;
});
afterAll(() => Promise.all([bench.close(), issuer.close()]));

/** Everything that comes back over TLS on a connection of its own for the bytes given. */
async function exchange(bytes: string, isWhole = true): Promise<string> {
  const to = { host: "127.0.0.1", port: bench.gateway.httpsPort ?? 0, servername: host };
  const socket = connect({ ...to, rejectUnauthorized: false });
  socket.on("error", () => {});
  socket.write(bytes, "latin1");
  if (isWhole) setTimeout(() => socket.end(), 1_500).unref();
  const body = await bodyOf(socket).catch(() => Buffer.alloc(0));
  socket.destroy();
  return body.toString("latin1");
}

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const inMinutes = (minutes: number) => Math.floor(Date.now() / 1000) + minutes * 60;
const claims = (more: object = {}) => ({
  iss: issuer.url,
  sub: "ann",
  aud: "shop",
  exp: inMinutes(5),
  ...more,
});
const good = (header: object = {}, more: object = {}) => issuer.token(claims(more), header);
/** Signed by a key of the attacker's own. */
function forged(header: object): Promise<string> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return new SignJWT(claims()).setProtectedHeader({ alg: "ES256", ...header }).sign(privateKey);
}

test("a good token passes", async () => {
  const headers = { authorization: `Bearer ${await good()}` };
  expect(await bench.call({ host, path: "/a", headers })).toMatchObject({ status: 200 });
});

type Headers = Record<string, string | string[]>;
test.each<[string, number, () => Promise<Headers | string> | Headers | string]>([
  ["no token", 403, () => ({})],
  ["the algorithm none", 401, () => `${base64url({ alg: "none" })}.${base64url(claims())}.`],
  ["the algorithm nOnE", 401, () => `${base64url({ alg: "nOnE" })}.${base64url(claims())}.`],
  ["no algorithm", 401, () => `${base64url({})}.${base64url(claims())}.x`],
  ["a list of algorithms", 401, () => `${base64url({ alg: ["ES256"] })}.${base64url(claims())}.x`],
  [
    "HS256 with the public key",
    401,
    async () => {
      const key = await importJWK(issuer.key.jwk, "ES256", { extractable: true });
      const text = `${base64url({ alg: "HS256", kid: "first" })}.${base64url(claims())}`;
      const secret = await exportSPKI(key as CryptoKey);
      return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
    },
  ],
  ["a kid that is a path", 401, () => forged({ kid: "../../../../dev/null" })],
  ["a kid that is a query", 401, () => forged({ kid: "x' UNION SELECT 'key" })],
  ["a kid that is a URL", 401, () => forged({ kid: "http://127.0.0.1/keys" })],
  ["a kid of 8,000 letters", 401, () => forged({ kid: "k".repeat(8_000) })],
  ["a kid of every object", 401, () => forged({ kid: "__proto__" })],
  ["no kid, and another key", 401, () => forged({})],
  ["the issuer's kid, and another key", 401, () => forged({ kid: "first" })],
  ["a jku of its own", 401, () => forged({ kid: "first", jku: "http://127.0.0.1:1/keys" })],
  ["an x5u of its own", 401, () => forged({ kid: "first", x5u: "http://127.0.0.1:1/cert" })],
  ["a claim that must be understood", 401, async () => {
    const header = { alg: "ES256", kid: "first", crit: ["x"], x: 1 };
    return `${base64url(header)}.${(await good()).split(".").slice(1).join(".")}`;
  }],
  ["an end an hour ago", 401, () => good({}, { exp: inMinutes(-60) })],
  ["an end that is a text", 401, async () => {
    const text = `${base64url({ alg: "ES256", kid: "first" })}.${base64url(claims({ exp: "9999999999" }))}`;
    return `${text}.${(await good()).split(".")[2]}`;
  }],
  ["a beginning in an hour", 401, () => good({}, { nbf: inMinutes(60) })],
  ["another audience", 403, () => good({}, { aud: "other" })],
  ["an audience in capitals", 403, () => good({}, { aud: "SHOP" })],
  ["an audience that has ours in it", 403, () => good({}, { aud: "shopping" })],
  ["no audience", 403, () => good({}, { aud: undefined })],
  ["another issuer", 401, () => good({}, { iss: "https://evil.example" })],
  ["an issuer with a slash more", 401, () => good({}, { iss: `${issuer.url}/` })],
  ["a list of issuers", 401, async () => {
    const text = `${base64url({ alg: "ES256", kid: "first" })}.${base64url(claims({ iss: [issuer.url] }))}`;
    return `${text}.${(await good()).split(".")[2]}`;
  }],
  ["an encrypted token", 401, () => `${base64url({ alg: "dir", enc: "A256GCM" })}..a.b.c`],
  ["a signature in another place", 401, async () => `.${await good()}`],
  ["a token of 20,000 bytes", 403, async () => `${await good()}${"A".repeat(20_000)}`],
  ["two Authorization headers", 401, async () => ({
    authorization: [`Bearer ${await good()}`, "Bearer x"],
  })],
  ["the good one twice", 401, async () => {
    const one = `Bearer ${await good()}`;
    return { authorization: [one, one] };
  }],
  ["two tokens in one header", 401, async () => `${await good()}, ${await good()}`],
  ["the scheme Basic", 403, async () => ({ authorization: `Basic ${await good()}` })],
  ["a token in another header", 403, async () => ({ "x-authorization": `Bearer ${await good()}` })],
  ["a token in a cookie", 403, async () => ({ cookie: `access_token=${await good()}` })],
  ["claims of a proxy", 403, () => ({
    "x-forwarded-user": "ann",
    "x-forwarded-for": "127.0.0.1",
    forwarded: "for=127.0.0.1",
    "x-envoy-internal": "true",
    "x-jwt-payload": base64url({ sub: "ann" }),
  })],
  ["another path in a header", 403, () => ({
    "x-original-url": "/public/a",
    "x-rewrite-url": "/public/a",
    "x-forwarded-prefix": "/public",
  })],
])("a token with %s gets %d", async (_, status, attack) => {
  const made = await attack();
  const headers = typeof made === "string" ? { authorization: `Bearer ${made}` } : made;
  const answer = await bench.call({ host, path: "/a", headers });
  expect(answer.status).toBe(status);
  expect(answer.body).toMatch(/^(access is denied|the request has no valid token)\n$/);
  expect(pod.seen).toEqual([]);
}); // prettier-ignore

/** A Service that reads its token in another place than the gateway must find a good one there, too. */
test.each<[string, number, (good: string, bad: string) => { bearer?: string; query: string }]>([
  ["a good one in both places", 200, (ok) => ({ bearer: ok, query: `access_token=${ok}` })],
  ["a forged one in the parameter", 401, (ok, bad) => ({ bearer: ok, query: `access_token=${bad}` })],
  ["a forged one in the header", 401, (ok, bad) => ({ bearer: bad, query: `access_token=${ok}` })],
  ["a forged second parameter", 401, (ok, bad) => ({ query: `access_token=${ok}&access_token=${bad}` })],
  ["a forged first parameter", 401, (ok, bad) => ({ query: `access_token=${bad}&access_token=${ok}` })],
  ["an encoded name of the second", 401, (ok, bad) => ({ query: `access_token=${ok}&access%5Ftoken=${bad}` })],
  ["one too long in the parameter", 401, (ok, bad) => ({ bearer: ok, query: `access_token=${bad}${"A".repeat(17_000)}` })],
  ["the good one in another parameter", 403, (ok) => ({ query: `ACCESS_TOKEN=${ok}` })],
])("tokens in several places, %s: %d", async (_, status, attack) => {
  const forgery = await forged({ kid: "first" });
  const { bearer, query } = attack(await good(), forgery);
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const answer = await bench.call({ host, path: `/a?${query}`, headers });
  expect(answer.status).toBe(status);
  expect(pod.seen).toHaveLength(status === 200 ? 1 : 0);
}); // prettier-ignore

/** Ways to the protected Service that do not name the APIRule's host, or not as it is written. */
test.each<[string, number, string]>([
  ["its host in capitals", 403, "GET /a HTTP/1.1\r\nhost: DICE.Example.COM\r\n"],
  ["its host with a dot", 403, `GET /a HTTP/1.1\r\nhost: ${host}.\r\n`],
  ["its host with two dots", 404, `GET /a HTTP/1.1\r\nhost: ${host}..\r\n`],
  ["its host with a port", 403, `GET /a HTTP/1.1\r\nhost: ${host}:80\r\n`],
  ["its host with a port that is none", 403, `GET /a HTTP/1.1\r\nhost: ${host}:x\r\n`],
  ["its host with user information", 404, `GET /a HTTP/1.1\r\nhost: x@${host}\r\n`],
  ["its host in absolute form", 403, `GET http://${host}/a HTTP/1.1\r\nhost: hello.default.localhost\r\n`],
  ["the Function's host", 403, "GET /public/a HTTP/1.1\r\nhost: hello.default.localhost\r\n"],
  ["the Function's host inside", 403, "GET /public/a HTTP/1.1\r\nhost: hello.default.svc.cluster.local\r\n"],
  ["the Function's short host", 403, "GET /public/a HTTP/1.1\r\nhost: hello.default.svc.\r\n"],
  ["the Function's host in absolute form", 403, `GET http://hello.default.svc/a HTTP/1.1\r\nhost: ${host}\r\n`],
  ["the Function's host with a port that is none", 404, "GET /a HTTP/1.1\r\nhost: hello.default.localhost:x\r\n"],
  ["a path that names the Function", 403, "GET /fn/default/hello/a HTTP/1.1\r\nhost: localhost\r\n"],
  ["the same in absolute form", 403, "GET http://localhost/fn/default/hello/a HTTP/1.1\r\nhost: x\r\n"],
  ["the same with an IPv6 address", 403, "GET /fn/default/hello/a HTTP/1.1\r\nhost: [::1]:80\r\n"],
  ["the same with a mapped address", 404, "GET /fn/default/hello/a HTTP/1.1\r\nhost: [::ffff:127.0.0.1]\r\n"],
  ["HTTP/1.0 without a host", 404, "GET /a HTTP/1.0\r\n"],
  ["a method that no rule names", 404, `TRACE /a HTTP/1.1\r\nhost: ${host}\r\n`],
  ["HEAD in place of GET", 404, `HEAD /a HTTP/1.1\r\nhost: ${host}\r\n`],
  ["a method in small letters", 400, `get /a HTTP/1.1\r\nhost: ${host}\r\n`],
  ["a preflight of no policy", 404, `OPTIONS /a HTTP/1.1\r\nhost: ${host}\r\norigin: https://x.example\r\naccess-control-request-method: GET\r\n`],
  ["a WebSocket", 403, `GET /a HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n`],
  ["a change to HTTP/2", 403, `GET /a HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n`],
  ["a Service of a Revision", 404, "GET /a HTTP/1.1\r\nhost: hello-00001-private.default.svc\r\n"],
])("no way around the APIRule: %s gets %d", async (_, status, head) => {
  const keep = head.includes("upgrade") ? "" : "connection: close\r\n";
  const answer = await bench.exchange(`${head}${keep}\r\n`);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect([...pod.seen, ...mapped.seen]).toEqual([]);
}); // prettier-ignore

test("what a client says in X-Forwarded-* is not believed", async () => {
  const headers = {
    "x-forwarded-for": "10.0.0.1",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "bank.example",
    forwarded: "for=10.0.0.1;host=bank.example",
    "x-http-method-override": "POST",
  };
  expect(await bench.call({ host, path: "/public/a", headers })).toMatchObject({ status: 200 });
  // The rule is that of the method which the Service gets.
  expect(pod.seen[0]).toMatchObject({ method: "GET", url: "/public/a" });
  expect(pod.seen[0]?.headers).toMatchObject({
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-proto": "http",
    "x-forwarded-host": host,
  });
  expect(JSON.stringify(pod.seen[0]?.rawHeaders)).not.toContain("bank.example");
});

/** Which rule and which path: what is open below `/public` must not lead elsewhere. */
test.each<[string, number]>([
  ["/public/../admin", 403],
  ["/public/%2e%2e/admin", 403],
  ["/public/%2E./admin", 403],
  ["/public/./../admin", 403],
  ["/public//../admin", 400],
  ["/public/..%2fadmin", 400],
  ["/public/..%5cadmin", 400],
  ["/public/..\\admin", 400],
  ["/public/..;/admin", 400],
  ["/public/..;a=b/admin", 400],
  ["/public/%252e%252e/admin", 200],
  ["/public/..%3b/admin", 400],
  ["/public/..%3B/admin", 400],
  ["/public/%2e%2e%3bx/admin", 400],
  ["/public/..%09/admin", 400],
  ["/public/..%0a/admin", 400],
  ["/public/..%0d%0a/admin", 400],
  ["/public/..%3f/admin", 400],
  ["/public/..%23", 400],
  ["/public/a%1f", 400],
  ["/public/a%7F", 400],
  ["/public/%e0%80%ae%e0%80%ae/admin", 400],
  ["/public/a%3bx", 200],
  ["/public/a%3fx", 200],
  ["/public%3b/a", 400],
  ["/public%3fx/a", 403],
  ["/public%2f..%2fadmin", 400],
  ["//public/../admin", 400],
  ["//public/a", 400],
  ["/public;/a", 400],
  ["/public%2fa", 400],
  ["//admin", 403],
  ["/%70ublic/a", 200],
  ["/PUBLIC/a", 403],
  ["/public;x/a", 400],
  ["/public/a;x", 200],
  ["/public/a%00", 400],
  ["/public/%c0%ae%c0%ae/admin", 400],
  ["/public", 403],
  ["/../../etc/passwd", 403],
  ["http://dice.example.com/public/../admin", 403],
])("the path %s gets %d", async (path, status) => {
  const answer = await exchange(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
  );
  const got = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
  const urls = pod.seen.map(({ url = "" }) => new URL(url, "http://x").pathname);
  expect({ got, urls }).toEqual({
    got: status,
    urls: status === 200 ? [expect.stringMatching(/^\/public\//)] : [],
  });
});

const get = `GET /public/a HTTP/1.1\r\nhost: ${host}\r\n`;
const post = `POST /public/a HTTP/1.1\r\nhost: ${host}\r\n`;
const hidden = `GET /public/hidden HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
const chunks = "2\r\nab\r\n0\r\n\r\n";

test.each<[string, string, number]>([
  ["a length and chunks", `${post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`, 400],
  ["two lengths", `${post}content-length: 2\r\ncontent-length: 0\r\n\r\nab`, 400],
  ["two codings", `${post}transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n${chunks}`, 400],
  ["a folded header", `${get}x: 1\r\n  folded\r\n\r\n`, 400],
  ["bare line feeds", `GET /public/a HTTP/1.1\nhost: ${host}\n\n`, 400],
  ["two hosts", `${get}host: other.example.com\r\n\r\n`, 400],
  ["no host", "GET /public/a HTTP/1.1\r\n\r\n", 400],
  ["the host of another connection", `GET /public/a HTTP/1.1\r\nhost: other.example.com\r\nconnection: close\r\n\r\n`, 404],
  ["a Function's own host", `GET /public/a HTTP/1.1\r\nhost: hello.default.localhost\r\nconnection: close\r\n\r\n`, 404],
  ["a header of 40 KiB", `${get}x: ${"y".repeat(40_000)}\r\n\r\n`, 431],
  ["2,000 headers of 20 bytes", `${get}${Array.from({ length: 2_000 }, (_, n) => `x-${n}: ${"y".repeat(12)}`).join("\r\n")}\r\n\r\n`, 431],
  ["a head that never ends", get, 408],
  ["another version", `GET /public/a HTTP/2.0\r\nhost: ${host}\r\n\r\n`, 505],
  ["a tunnel", `CONNECT 10.0.0.1:22 HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 405],
])("a request with %s: nothing behind it is read", async (_, bytes, status) => {
  const isHalf = status === 408;
  const answer = await exchange(isHalf ? bytes : bytes + hidden, !isHalf);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  expect(pod.seen.map(({ url }) => url)).toEqual([]);
}); // prettier-ignore

test("headers of one connection end with it", async () => {
  const answer = await exchange(
    `${get}connection: close, x-secret\r\nx-secret: 1\r\nkeep-alive: 9\r\nproxy-authorization: x\r\nte: gzip\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200/);
  const names = pod.seen[0]?.rawHeaders.filter((_, index) => index % 2 === 0);
  for (const name of ["x-secret", "keep-alive", "proxy-authorization", "te"])
    expect(names).not.toContain(name);
});
