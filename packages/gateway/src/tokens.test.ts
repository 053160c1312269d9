/** Who may call: tokens through the front door, with an issuer that serves its keys over HTTP. */
import { createSign, createHmac, generateKeyPairSync } from "node:crypto";
import { type Logger, resources, silentLogger } from "@spry/kube";
import { exportSPKI, importJWK, type JWTPayload } from "jose";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CallAcceptor, type WaitingCall } from "./http/waiting-calls.ts";
import { type TestPod } from "./testing/bench.ts";
import { type ExposureBench, startExposureBench, startIssuer } from "./testing/exposure.ts";

type Issuer = Awaited<ReturnType<typeof startIssuer>>;

let bench: ExposureBench;
let issuer: Issuer;
let pod: TestPod;
const lines: { fields: Record<string, unknown>; message: string }[] = [];
const log: Logger = {
  ...silentLogger,
  info: (fields, message) => lines.push({ fields: fields as Record<string, unknown>, message }),
  child: () => log,
};

beforeEach(async () => {
  lines.length = 0;
  [bench, issuer] = await Promise.all([
    startExposureBench({ log, accessLog: true }),
    startIssuer(),
  ]);
  pod = await bench.pod((_, response) => response.end("in"));
  await bench.service();
  await bench.endpoints([pod]);
});
afterEach(() => Promise.all([bench.close(), issuer.close()]));

const host = "dice.example.com";
const get = (headers: object = {}, path = "/a") =>
  bench.call({ host, path, headers: headers as Record<string, string> });
const bearer = (token: string) => get({ authorization: `Bearer ${token}` });

function jwtRule(authorizations?: object[], more: object = {}) {
  const authentications = [{ ...issuer.authentication, ...more }];
  const jwt = { authentications, ...(authorizations ? { authorizations } : {}) };
  return bench.apiRule("dice", { rules: [{ path: "/*", methods: ["GET"], jwt }] });
}

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claimsOf = (more: JWTPayload = {}) => ({
  iss: issuer.url,
  sub: "ann",
  exp: Math.floor(Date.now() / 1000) + 300,
  ...more,
});

describe("a token of the issuer", () => {
  test("lets its caller pass, and the log says who that was", async () => {
    await jwtRule();
    expect(await bearer(await issuer.token())).toMatchObject({ status: 200, body: "in" });
    // The Service gets it, too.
    expect(pod.seen[0]?.headers.authorization).toContain("Bearer ey");
    const expected = { caller: "ann", apiRule: "default/dice", path: "/a", status: 200 };
    await expect.poll(() => lines.at(-1)?.fields).toMatchObject(expected);
  });

  test("does not reach a terminal with characters that it acts on, by its subject", async () => {
    await jwtRule();
    const token = await issuer.token({ sub: "ann\u202e\u009b2J" });
    expect(await bearer(token)).toMatchObject({ status: 200 });
    await expect.poll(() => lines.at(-1)?.fields).toMatchObject({ caller: "ann\uFFFD\uFFFD2J" });
  });

  test("may be in another header or a parameter", async () => {
    await jwtRule(undefined, { fromParams: ["t"] });
    expect(await get({}, `/a?t=${await issuer.token()}`)).toMatchObject({ status: 200 });
    await jwtRule(undefined, { fromHeaders: [{ name: "x-token", prefix: "T " }] });
    expect(await get({ "x-token": `T ${await issuer.token()}` })).toMatchObject({ status: 200 });
  });

  test.each<[string, JWTPayload, number]>([
    ["scope and audience", { scope: "read write", aud: ["shop"] }, 200],
    ["another scope", { scope: "write", aud: "shop" }, 403],
    ["no scope", { aud: "shop" }, 403],
    ["another audience", { scope: "read", aud: "other" }, 403],
  ])("with %s, where some are required", async (_, claims, status) => {
    await jwtRule([{ requiredScopes: ["read"], audiences: ["shop"] }]);
    expect(await bearer(await issuer.token(claims))).toMatchObject({ status });
  });

  test("counts after the issuer's keys have changed", async () => {
    await jwtRule();
    const before = await issuer.token();
    expect(await bearer(before)).toMatchObject({ status: 200 });
    await issuer.rotate("second");
    expect(await bearer(await issuer.token())).toMatchObject({ status: 200 });
    // A token that was signed with the removed key was valid a moment ago.
    expect(await bearer(before)).toMatchObject({ status: 401 });
  });
});

describe("a request is refused, and only the log says why:", () => {
  type Attack = () => Promise<object> | object;
  const authorization = (token: string) => ({ authorization: `Bearer ${token}` });
  const signed = (head: object, claims: object, sign: (text: string) => string) => {
    const text = `${base64url(head)}.${base64url(claims)}`;
    return authorization(`${text}.${sign(text)}`);
  };
  const attacks: [string, number, string, Attack][] = [
    ["without a token", 403, "no token", () => ({})],
    [
      "without a token, for a WebSocket",
      403,
      "no token",
      () => ({ connection: "upgrade", upgrade: "websocket" }),
    ],
    ["with another scheme", 403, "no token", () => ({ authorization: "Basic YTpi" })],
    ["with no token at all", 401, "malformed", () => authorization("x")],
    [
      "with the algorithm none",
      401,
      "algorithm",
      () => signed({ alg: "none" }, claimsOf(), () => ""),
    ],
    [
      "with the public key as a shared secret",
      401,
      "algorithm",
      async () => {
        const key = await importJWK(issuer.key.jwk, "ES256", { extractable: true });
        const secret = await exportSPKI(key as CryptoKey);
        const sign = (text: string) =>
          createHmac("sha256", secret).update(text).digest("base64url");
        return signed({ alg: "HS256", kid: "first" }, claimsOf(), sign);
      },
    ],
    [
      "with a key of the token's own",
      401,
      "signature",
      () => {
        const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
        const jwk = publicKey.export({ format: "jwk" });
        const sign = (text: string) =>
          createSign("sha256")
            .update(text)
            .sign({ key: privateKey, dsaEncoding: "ieee-p1363" }, "base64url");
        return signed({ alg: "ES256", kid: "first", jwk }, claimsOf(), sign);
      },
    ],
    [
      "of another issuer",
      401,
      "issuer",
      async () => authorization(await issuer.token({ iss: "https://other" })),
    ],
    [
      "that has expired",
      401,
      "expired",
      async () => authorization(await issuer.token({ exp: 1_000_000 })),
    ],
    [
      "with changed claims",
      401,
      "signature",
      async () => {
        const [head, , signature] = (await issuer.token()).split(".");
        return authorization(`${head}.${base64url(claimsOf({ sub: "eve" }))}.${signature}`);
      },
    ],
    [
      "with two tokens",
      401,
      "",
      async () => ({ authorization: [`Bearer ${await issuer.token()}`, "Bearer x"] }),
    ],
  ];
  test.each(attacks)("%s: %d", async (_, status, why, attack) => {
    await jwtRule();
    const answer = await get(await attack());
    expect(answer).toMatchObject({ status });
    expect(answer.body).toMatch(/^(access is denied|the request has no valid token)\n$/);
    expect(pod.seen).toHaveLength(0);
    const refused = lines.find(({ message }) => message === "request refused");
    expect(refused?.fields).toMatchObject({ status, client: "127.0.0.1", host, path: "/a" });
    expect(refused?.fields["reason"]).toContain(why);
    expect(JSON.stringify(refused)).not.toContain("eyJ");
  });

  test("of an issuer that cannot be reached: 401, and nothing of its answer is shown", async () => {
    const gone = await startIssuer();
    await gone.close();
    const authentications = [gone.authentication];
    const rules = [{ path: "/*", methods: ["GET" as const], jwt: { authentications } }];
    await bench.apiRule("dice", { rules });
    const answer = await bearer(await gone.token());
    expect(answer).toMatchObject({ status: 401, body: "the request has no valid token\n" });
    const refused = lines.find(({ message }) => message === "request refused");
    expect(refused?.fields).toMatchObject({
      reason: "the issuer's keys are not available",
      problems: [expect.stringContaining("ECONNREFUSED")],
    });
  });

  test("of an issuer on loopback that the operator has not allowed: nothing is connected to", async () => {
    const hidden = await startIssuer({ isAllowed: false });
    const { issuer: name, jwksUri: uri } = hidden.authentication;
    for (const host of ["127.0.0.1", "localhost", "hello.default.localhost", "[::ffff:7f00:1]"]) {
      const jwksUri = uri.replace("127.0.0.1", host);
      const authentications = [{ issuer: name, jwksUri }];
      const rules = [{ path: "/*", methods: ["GET" as const], jwt: { authentications } }];
      await bench.apiRule("dice", { rules });
      expect((await bearer(await hidden.token())).status).toBe(401);
    }
    expect(hidden.fetched()).toBe(0);
    await hidden.close();
  });

  test("whose issuer is a Service of another namespace, unless that permits it", async () => {
    await bench.client.create(resources.namespaces, { metadata: { name: "id" } });
    const target = { namespace: "id", name: "issuer" };
    const port = Number(new URL(issuer.url).port);
    await bench.client.create(resources.services, {
      metadata: target,
      spec: { ports: [{ port }] },
    });
    await bench.client.create(resources.endpointSlices, {
      metadata: { ...target, labels: { "kubernetes.io/service-name": "issuer" } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["127.0.0.1"] }],
      ports: [{ port, protocol: "TCP" }],
    });
    await bench.heard();
    await jwtRule();
    expect(await bearer(await issuer.token())).toMatchObject({ status: 401 });
    expect(issuer.fetched()).toBe(0);
    const refused = lines.find(({ message }) => message === "request refused");
    expect(refused?.fields["problems"]).toEqual([
      expect.stringContaining("belongs to a Service of another namespace"),
    ]);
    const annotations = { "gateway.kyma-project.io/exposable-from": "default" };
    await bench.client.patch(resources.services, target, { metadata: { annotations } });
    await bench.heard();
    // A failure is remembered for a while, for this URL.
    await jwtRule(undefined, { jwksUri: `${issuer.url}/other` });
    expect(await bearer(await issuer.token())).toMatchObject({ status: 200 });
  });

  test("many times, with a bounded log", async () => {
    await jwtRule();
    const begin = performance.now();
    await Promise.all(Array.from({ length: 60 }, () => get()));
    const seconds = (performance.now() - begin) / 1_000;
    const written = lines.filter(({ message }) => message === "request refused");
    // At most 20 a second, however long a busy machine takes.
    expect(written.length).toBeLessThanOrEqual(20 * (Math.ceil(seconds) + 1));
  });
});

describe("a call that may wait", () => {
  let accepted: WaitingCall[];
  let waiting: ExposureBench;

  beforeEach(async () => {
    accepted = [];
    const calls: CallAcceptor = {
      async accept(call) {
        accepted.push(call);
        call.response.writeHead(202, {}).end();
      },
      async report(_id, _request, response) {
        response.writeHead(404, {}).end();
      },
    };
    waiting = await startExposureBench({ calls });
    for (const name of ["hello", "open"]) await waiting.service(name);
    const jwt = { authentications: [issuer.authentication] };
    const rules = [{ path: "/*", methods: ["GET"], jwt }];
    await waiting.apiRule("dice", { rules });
  });
  afterEach(() => waiting.close());

  test("needs the token that a call needs that does not wait, whatever names the Function", async () => {
    const prefer = { prefer: "respond-async" };
    const ways = [
      { host: "localhost", path: "/async/default/hello/a" },
      { host: `127.0.0.1:${waiting.port}`, path: "/async/default/hello" },
      { host: "localhost", path: "/async-function/hello" },
      { host: "localhost", path: "/async-function/hello.default/?b" },
      { host: "localhost", path: "/fn/default/hello/", headers: prefer },
      { host: "hello.default.localhost", path: "/", headers: prefer },
      { host: "hello.default.svc.cluster.local", path: "/", headers: prefer },
      { host, path: "/", headers: prefer },
      { host, path: "/", headers: { ...prefer, authorization: "Bearer x" } },
    ];
    for (const way of ways) expect([401, 403]).toContain((await waiting.call(way)).status);
    expect(accepted).toEqual([]);
    const authorization = `Bearer ${await issuer.token()}`;
    const allowed = await waiting.call({ host, path: "/", headers: { ...prefer, authorization } });
    expect(allowed.status).toBe(202);
  });

  test("may name as its callback what its client could call, and no more", async () => {
    const call = { host: "localhost", path: "/async/default/open/a" };
    expect((await waiting.call(call)).status).toBe(202);
    const [own] = accepted;
    expect(own).toMatchObject({ key: "default/open", path: "/a", isOfMachine: true });
    const services = ["default/open", "default/hello", "default/none"] as const;
    const may = await Promise.all(services.map(async (key) => own?.mayCall(key)));
    expect(may).toEqual([true, false, false]);
    const headers = {
      prefer: "respond-async",
      authorization: `Bearer ${await issuer.token()}`,
    };
    expect((await waiting.call({ host, path: "/", headers })).status).toBe(202);
    expect(accepted[1]).toMatchObject({ key: "default/hello", isOfMachine: false });
  });
});
