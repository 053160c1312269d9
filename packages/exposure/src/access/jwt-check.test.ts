/** Tokens, good and hostile, against a real server of keys on loopback. */
import { createHmac, generateKeyPairSync, KeyObject, sign } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { type JwtAuthentication, type JwtAuthorization } from "@spry/function";
import { ManualClock, OutboundGuard } from "@spry/kube";
import { exportJWK, exportSPKI, generateKeyPair, type GenerateKeyPairResult, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fetchKeys } from "./fetch-keys.ts";
import { publicKeyOf } from "./signature.ts";
import { JwksCache } from "./jwks-cache.ts";
import { createJwtCheck, type JwtCheck } from "./jwt-check.ts";

const clock = new ManualClock();
const now = () => Math.floor(clock.now() / 1_000);
let server: Server;
let origin: string;
let requests: string[];
let answer: (response: ServerResponse, url: string) => void;
let pairs: Record<"rsa" | "ec" | "ed" | "other", GenerateKeyPairResult>;
let cache: JwksCache;
let check: JwtCheck;
/** Of a fetch. A busy machine is not an issuer that hangs: only the row that is about it waits in vain. */
let timeoutMs: number;

const publicKey = async (name: keyof typeof pairs, more: object = {}) => ({
  ...(await exportJWK(pairs[name].publicKey)),
  kid: name,
  ...more,
});

beforeAll(async () => {
  const [rsa, ec, ed, other] = await Promise.all([
    generateKeyPair("RS256", { extractable: true }),
    generateKeyPair("ES256", { extractable: true }),
    generateKeyPair("EdDSA", { extractable: true }),
    generateKeyPair("RS256", { extractable: true }),
  ]);
  pairs = { rsa, ec, ed, other };
  server = createServer((request, response) => {
    requests.push(request.url ?? "");
    answer(response, request.url ?? "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function serve(...keys: object[]): Promise<void> {
  const body = JSON.stringify({ keys });
  answer = (response) => response.end(body);
}

beforeEach(async () => {
  requests = [];
  timeoutMs = 60_000;
  await clock.advance(10_000);
  cache = new JwksCache({
    fetch: ({ uri }) => fetchKeys(uri, { guard: guardOf(origin), timeoutMs }),
    clock,
  });
  check = createJwtCheck({ keys: cache, clock });
  await serve(await publicKey("rsa"), await publicKey("ec"), await publicKey("ed"));
});

/** As on a platform whose operator allows these servers. */
const guardOf = (...origins: string[]) =>
  new OutboundGuard({
    allowPrivate: true,
    allowed: origins.map((each) => ({ host: "127.0.0.1", port: Number(new URL(each).port) })),
  });

const issuer = "https://id.example";
interface TokenOptions {
  by?: keyof typeof pairs;
  /** Of another key than the one that `by` names. */
  pair?: GenerateKeyPairResult;
  alg?: string;
  header?: object;
  claims?: object;
}

function token({
  by = "ec",
  pair = pairs[by],
  alg = "ES256",
  header = {},
  claims = {},
}: TokenOptions = {}): Promise<string> {
  const payload = { iss: issuer, sub: "me", iat: now(), exp: now() + 300, ...claims };
  return new SignJWT(payload).setProtectedHeader({ alg, kid: by, ...header }).sign(pair.privateKey);
}

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

async function ask(
  bearer: string | undefined,
  authorizations: JwtAuthorization[] = [],
  authentication: Partial<JwtAuthentication> = {},
  tenant = "shop",
) {
  const request = {
    header: (name: string) => (name === "authorization" && bearer ? `Bearer ${bearer}` : undefined),
    query: "",
  };
  const authentications = [{ issuer, jwksUri: `${origin}/keys`, ...authentication }];
  const jwt = { kind: "jwt" as const, authentications, authorizations };
  const decision = await check.check(request, jwt, tenant);
  return decision.kind === "allowed" ? "allowed" : `${decision.status} ${decision.reason}`;
}

const malformed = "401 the token is malformed";
const badSignature = "401 the token's signature is not valid";

describe("a token", () => {
  test.each<[what: string, make: () => Promise<string | undefined> | string, decision: string]>([
    ["of an EC key", () => token(), "allowed"],
    ["of an RSA key", () => token({ by: "rsa", alg: "RS256" }), "allowed"],
    ["of an Ed25519 key", () => token({ by: "ed", alg: "EdDSA" }), "allowed"],
    ["without kid", () => token({ header: { kid: undefined } }), "allowed"],
    ["that ended 30 s ago: clocks differ", () => token({ claims: { exp: now() - 30 } }), "allowed"],
    [
      "that ended two minutes ago",
      () => token({ claims: { exp: now() - 120 } }),
      "401 the token has expired",
    ],
    [
      "that is not valid yet",
      () => token({ claims: { nbf: now() + 120 } }),
      "401 the token is not valid yet",
    ],
    ["none", () => Promise.resolve(undefined), "403 the request has no token"],
    [
      "of another issuer",
      () => token({ claims: { iss: "https://evil.example" } }),
      "401 the token's issuer is not configured",
    ],
    [
      "of another key of that name",
      () => token({ by: "other", alg: "RS256", header: { kid: "rsa" } }),
      badSignature,
    ],
    [
      "of a key that the issuer does not have",
      () => token({ by: "other", alg: "RS256" }),
      "401 the token's key is not one of the issuer's",
    ],
    [
      "of an algorithm for another kind of key",
      () => token({ by: "rsa", alg: "RS256", header: { kid: "ec" } }),
      "401 the token's key is not one of the issuer's",
    ],
    [
      "with an unknown critical header",
      () =>
        token({ header: { crit: ["x"], x: 1 } }).catch(
          () =>
            `${base64({ alg: "ES256", kid: "ec", crit: ["x"], x: 1 })}.${base64({ iss: issuer })}.x`,
        ),
      badSignature,
    ],
    [
      "without a signature",
      () => `${base64({ alg: "none" })}.${base64({ iss: issuer })}.`,
      "401 the token's algorithm is not accepted",
    ],
    [
      "without a signature, in capitals",
      () => `${base64({ alg: "NONE" })}.${base64({ iss: issuer })}.`,
      "401 the token's algorithm is not accepted",
    ],
    [
      "signed with the public key as a secret",
      async () => {
        const head = `${base64({ alg: "HS256", kid: "rsa" })}.${base64({ iss: issuer, exp: now() + 300 })}`;
        const secret = await exportSPKI(pairs.rsa.publicKey);
        return `${head}.${createHmac("sha256", secret).update(head).digest("base64url")}`;
      },
      "401 the token's algorithm is not accepted",
    ],
    [
      "with a key of its own in its header",
      () =>
        token({
          by: "other",
          alg: "RS256",
          header: { kid: "rsa", jwk: { kty: "RSA" }, jku: "http://evil" },
        }),
      badSignature,
    ],
    [
      "that has been changed",
      async () => (await token()).replace(/\.[^.]+\./, `.${base64({ iss: issuer, sub: "you" })}.`),
      badSignature,
    ],
    ["cut off", async () => (await token()).slice(0, -20), badSignature],
    ["of two parts", async () => (await token()).split(".").slice(0, 2).join("."), malformed],
    ["that is no token", () => "x", malformed],
    ["with what base64url does not have", async () => `${await token()}=`, malformed],
    ["in four parts", async () => `${await token()}.x`, malformed],
    [
      "that names no issuer",
      () => token({ claims: { iss: undefined } }),
      "401 the token names no issuer",
    ],
    [
      "whose end is a text",
      () => token({ claims: { exp: "2999" } }),
      "401 the token's times are not numbers",
    ],
    [
      "whose signature is DER",
      async () => {
        const [head = "", body = ""] = (await token()).split(".");
        const pem = KeyObject.from(pairs.ec.privateKey);
        return `${head}.${body}.${sign("sha256", Buffer.from(`${head}.${body}`), pem).toString("base64url")}`;
      },
      badSignature,
    ],
    ["whose claims are a list", () => `${base64({ alg: "ES256" })}.${base64([])}.x`, malformed],
    [
      "whose kid is a number",
      () => `${base64({ alg: "ES256", kid: 1 })}.${base64({ iss: issuer })}.x`,
      badSignature,
    ],
  ])("%s", async (_, make, decision) => {
    const made = await make();
    expect(await ask(made)).toBe(decision);
    // The same the second time, from memory.
    expect(await ask(made)).toBe(decision);
  });

  test("that lacks a scope gets 403", async () => {
    const scoped = await token({ claims: { scope: "read" } });
    expect(await ask(scoped, [{ requiredScopes: ["write"] }])).toBe(
      "403 the token lacks a scope or an audience",
    );
    expect(await ask(scoped, [{ requiredScopes: ["read"] }])).toBe("allowed");
  });

  test("expires although it has been seen before", async () => {
    const short = await token({ claims: { exp: now() + 60 } });
    expect(await ask(short)).toBe("allowed");
    await clock.advance(121_000);
    expect(await ask(short)).toBe("401 the token has expired");
  });
});

describe("keys", () => {
  const problem = (tenant = "shop") => cache.problem({ uri: `${origin}/keys`, tenant });

  test("are fetched once, however many wait", async () => {
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, n) => token({ claims: { n } })),
    );
    const decisions = await Promise.all(tokens.map((each) => ask(each)));
    expect(new Set(decisions)).toEqual(new Set(["allowed"]));
    expect(requests).toEqual(["/keys"]);
  });

  test("are fetched again at once for a key that is new", async () => {
    expect(await ask(await token())).toBe("allowed");
    await serve(await publicKey("ec"), await publicKey("other"));
    const rotated = await token({ by: "other", alg: "RS256" });
    expect(await ask(rotated)).toBe("allowed");
    expect(requests).toHaveLength(2);
  });

  test("are fetched again three times, and then every 5 s, for keys that attackers invent", async () => {
    expect(await ask(await token())).toBe("allowed");
    const unknown = await Promise.all(
      Array.from({ length: 50 }, (_, n) => token({ header: { kid: `x${n}` } })),
    );
    for (const each of unknown) expect(await ask(each)).toMatch(/^401/);
    expect(requests).toHaveLength(4);
    await clock.advance(5_000);
    await Promise.all(unknown.map((each) => ask(each)));
    expect(requests).toHaveLength(5);
    for (const each of unknown) expect(await ask(each)).toMatch(/^401/);
    expect(requests).toHaveLength(5);
  });

  test("that are new count after 5 s at the latest, whatever attackers invent meanwhile", async () => {
    expect(await ask(await token())).toBe("allowed");
    const invent = async () => {
      for (let n = 0; n < 20; n++)
        await ask(await token({ header: { kid: `${n}-${clock.now()}` } }));
    };
    await invent();
    for (let n = 0; n < 5; n++) {
      await clock.advance(5_000);
      await invent();
    }
    await serve(await publicKey("ec"), await publicKey("other"));
    const rotated = await token({ by: "other", alg: "RS256" });
    await invent();
    expect(await ask(rotated)).toMatch(/^401/);
    await clock.advance(5_000);
    expect(await ask(rotated)).toBe("allowed");
  });

  test("that are new while a fetch is under way that began before are fetched once more", async () => {
    expect(await ask(await token())).toBe("allowed");
    const rotated = await token({ by: "other", alg: "RS256" });
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const before = JSON.stringify({ keys: [await publicKey("ec")] });
    answer = (response) => void held.then(() => response.end(before));
    const stranger = ask(await token({ header: { kid: "invented" } }));
    await expect.poll(() => requests.length).toBe(2);
    const asked = ask(rotated);
    await serve(await publicKey("ec"), await publicKey("other"));
    release();
    expect(await stranger).toMatch(/^401/);
    expect(await asked).toBe("allowed");
  });

  test("that were replaced under their id count at the first token of the new one", async () => {
    expect(await ask(await token())).toBe("allowed");
    const before = await token();
    const { publicKey: key, privateKey } = await generateKeyPair("ES256", { extractable: true });
    await serve({ ...(await exportJWK(key)), kid: "ec" });
    const pair = { publicKey: key, privateKey };
    expect(await ask(await token({ pair }))).toBe("allowed");
    expect(requests).toHaveLength(2);
    // The old one does not.
    expect(await ask(before)).toBe(badSignature);
    // Nor do forged tokens cause more than one fetch in ten seconds.
    const forged = () =>
      token({ by: "other", alg: "ES256", pair: pairs.ec, header: { kid: "ec" } });
    for (let n = 0; n < 20; n++) expect(await ask(await forged())).toBe(badSignature);
    expect(requests).toHaveLength(2);
    await clock.advance(10_000);
    for (let n = 0; n < 20; n++) expect(await ask(await forged())).toBe(badSignature);
    expect(requests).toHaveLength(3);
  });

  test("that have not changed when they are fetched again leave verified tokens verified", async () => {
    const good = await token();
    expect(await ask(good)).toBe("allowed");
    const version = () => cache.version({ uri: `${origin}/keys`, tenant: "shop" });
    const first = version();
    await ask(await token({ header: { kid: "invented" } }));
    expect([requests.length, version()]).toEqual([2, first]);
    await serve(await publicKey("ec"));
    await ask(await token({ header: { kid: "invented too" } }));
    expect(version()).not.toBe(first);
    expect(await ask(good)).toBe("allowed");
  });

  test("are fetched in time by a clock that was set back", async () => {
    expect(await ask(await token())).toBe("allowed");
    await ask(await token({ header: { kid: "invented" } }));
    let set = clock.now();
    let passed = 0;
    const late = new JwksCache({
      fetch: ({ uri }) => fetchKeys(uri, { guard: guardOf(origin), timeoutMs }),
      clock: {
        now: () => set,
        elapsed: () => clock.elapsed() + passed,
        after: (ms, callback) => clock.after(ms, callback),
      },
    });
    const source = { uri: `${origin}/keys`, tenant: "shop" };
    const unknown = { kid: "other", alg: "RS256" };
    for (let n = 0; n < 5; n++) expect(await late.keysFor(source, unknown)).toEqual([]);
    set -= 3_600_000;
    await serve(await publicKey("ec"), await publicKey("other"));
    expect(await late.keysFor(source, unknown)).toEqual([]);
    passed += 5_000;
    expect(await late.keysFor(source, unknown)).toHaveLength(1);
  });

  test("are each tenant's own: neither what was fetched nor what failed shows another's", async () => {
    expect(await ask(await token())).toBe("allowed");
    expect(await ask(await token(), [], {}, "other")).toBe("allowed");
    expect(requests).toHaveLength(2);
    answer = (response) => response.destroy();
    await clock.advance(3_700_000);
    expect(await ask(await token())).toMatch(/^401/);
    expect([problem(), problem("other")]).toEqual([expect.any(String), undefined]);
    // Nor does one drive out what another uses.
    await serve(await publicKey("ec"));
    await clock.advance(11_000);
    await ask(await token());
    const before = requests.length;
    for (let n = 0; n < 60; n++)
      await ask(await token(), [], { jwksUri: `${origin}/${n}` }, "other");
    expect(await ask(await token())).toBe("allowed");
    expect(requests).toHaveLength(before + 60);
  });

  test("that the issuer has withdrawn do not count when the set is fetched again, for tokens seen before, too", async () => {
    const before = await token({ by: "rsa", alg: "RS256" });
    expect(await ask(before)).toBe("allowed");
    await serve(await publicKey("ec"));
    await clock.advance(301_000);
    const later = await token({ by: "rsa", alg: "RS256", claims: { exp: now() + 300 } });
    await ask(await token());
    await expect.poll(() => requests.length).toBe(2);
    await expect.poll(() => ask(later)).toBe("401 the token's key is not one of the issuer's");
  });

  test("are good for an hour while the issuer is unreachable, and then not", async () => {
    expect(await ask(await token())).toBe("allowed");
    answer = (response) => response.destroy();
    await clock.advance(3_000_000);
    expect(await ask(await token())).toBe("allowed");
    await clock.advance(700_000);
    expect(await ask(await token())).toBe("401 the issuer's keys are not available");
    expect(problem()).toBe(`keys at ${origin}/keys could not be fetched: ECONNRESET`);
    await serve(await publicKey("ec"));
    await clock.advance(11_000);
    expect(await ask(await token())).toBe("allowed");
    expect(problem()).toBeUndefined();
  });

  const huge = JSON.stringify({ keys: [], padding: "x".repeat(300_000) });
  type Reply = (response: ServerResponse) => void;
  test.each<[what: string, reply: Reply, problem: string, timeoutMs?: number]>([
    [
      "a redirect",
      (response) => response.writeHead(302, { location: `${origin}/keys` }).end(),
      "answered with status 302",
    ],
    ["an error", (response) => response.writeHead(500).end(), "answered with status 500"],
    ["too much", (response) => response.end(huge), "answered with more than 262144 bytes"],
    ["nothing in time", () => {}, "no answer within 300 ms", 300],
    [
      "half an answer",
      (response) =>
        void response
          .writeHead(200, { "content-length": "100" })
          .write("{", () => response.destroy()),
      "aborted",
    ],
    ["no JSON", (response) => response.end("<html>secret"), "the answer is not JSON"],
    [
      "another document",
      (response) => response.end('{"issuer":"x"}'),
      'the answer has no list of "keys" (RFC 7517)',
    ],
    ["null", (response) => response.end("null"), 'the answer has no list of "keys" (RFC 7517)'],
    [
      "keys that are none",
      (response) =>
        response.end('{"keys":[null,7,{"kty":"oct","k":"c2VjcmV0"},{"kty":"RSA","use":"enc"}]}'),
      "the answer has no key that can verify a token",
    ],
  ])("with %s", async (_, reply, why, limitMs = 60_000) => {
    timeoutMs = limitMs;
    answer = reply;
    expect(await ask(await token())).toBe("401 the issuer's keys are not available");
    expect(problem()).toBe(`keys at ${origin}/keys could not be fetched: ${why}`);
    expect(await ask(await token())).toMatch(/^401/);
    expect(requests).toHaveLength(1);
  });

  test("of a set with one that is broken: the others count", async () => {
    await serve({ kty: "EC", crv: "P-256", x: "AA", y: "AA", kid: "ec" }, await publicKey("ec"));
    expect(await ask(await token())).toBe("allowed");
  });

  test("that would each take long are not used: a token without an id is tried with eight, exponents have a limit", async () => {
    const { publicKey: other } = await generateKeyPair("ES256", { extractable: true });
    const decoy = await exportJWK(other);
    const mine = await publicKey("ec");
    const decoys = (count: number) => Array.from({ length: count }, () => ({ ...decoy }));
    const anonymous = () => token({ header: { kid: undefined } });
    await serve(...decoys(8), mine);
    expect(await ask(await anonymous())).toBe(badSignature);
    expect(await ask(await token())).toBe("allowed");
    const { publicKey: slow } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicExponent: 2 ** 31 + 11,
    });
    const jwk = slow.export({ format: "jwk" });
    expect(() => publicKeyOf(jwk)).not.toThrow();
    expect(() => publicKeyOf({ ...jwk, e: "AQAAAAAAAQ" })).toThrow("a large exponent");
  });

  test("that are too small to be safe count for nothing", async () => {
    const { publicKey: small, privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
    await serve({ ...small.export({ format: "jwk" }), kid: "small" });
    const head = `${base64({ alg: "RS256", kid: "small" })}.${base64({ iss: issuer, exp: now() + 300 })}`;
    const signature = sign("sha256", Buffer.from(head), privateKey).toString("base64url");
    expect(await ask(`${head}.${signature}`)).toBe(badSignature);
  });

  test.each(["RS384", "RS512", "PS256", "PS384", "PS512"])("of RSA sign by %s", async (alg) => {
    const pair = await generateKeyPair(alg, { extractable: true });
    await serve({ ...(await exportJWK(pair.publicKey)), kid: "rsa", alg });
    expect(await ask(await token({ by: "rsa", alg, pair }))).toBe("allowed");
  });

  test.each(["ES384", "ES512"])("of other curves sign by %s", async (alg) => {
    const pair = await generateKeyPair(alg, { extractable: true });
    await serve({ ...(await exportJWK(pair.publicKey)), kid: "ec" });
    expect(await ask(await token({ alg, pair }))).toBe("allowed");
  });

  test.each([
    ["127.0.0.1"],
    ["localhost"],
    ["[::ffff:127.0.0.1]"],
    ["0x7f.1"],
    ["2130706433"],
    ["0177.0.0.1"],
  ])("are not fetched from loopback as %s, unless the operator allows it", async (host) => {
    const uri = `${origin.replace("127.0.0.1", host)}/keys`;
    await expect(fetchKeys(uri, { guard: guardOf() })).rejects.toThrow(/is loopback/);
    expect(requests).toEqual([]);
    expect(await fetchKeys(uri, { guard: guardOf(origin) })).toContain("keys");
  });

  test("are not fetched from what a name resolves to, if that is link-local", async () => {
    const lookup = (_name: string, _options: object, callback: (...result: never[]) => void) =>
      callback(...([null, [{ address: "169.254.169.254", family: 4 }]] as never[]));
    const guard = new OutboundGuard({ allowPrivate: true, allowLoopback: true, lookup });
    await expect(fetchKeys("http://keys.example/", { guard })).rejects.toThrow(
      "address 169.254.169.254 is link-local or reserved",
    );
  });
});

test("of two issuers of a rule, neither can sign for the other, whatever the key's id", async () => {
  const keys: Record<string, object> = {
    "/a": { keys: [await publicKey("rsa")] },
    "/b": { keys: [await publicKey("other"), await publicKey("other", { kid: "rsa" })] },
  };
  answer = (response, url) => response.end(JSON.stringify(keys[url]));
  const [a, b] = ["a", "b"].map((name) => ({
    issuer: `https://${name}.example`,
    jwksUri: `${origin}/${name}`,
  })) as [JwtAuthentication, JwtAuthentication];
  const decide = async (authentications: JwtAuthentication[], bearer: string) => {
    const header = (name: string) => (name === "authorization" ? `Bearer ${bearer}` : undefined);
    const jwt = { kind: "jwt" as const, authentications, authorizations: [] };
    return (await check.check({ header, query: "" }, jwt, "shop")).kind;
  };
  const by = (issuedBy: string, signedBy: keyof typeof pairs, kid: string) =>
    token({ by: signedBy, alg: "RS256", header: { kid }, claims: { iss: issuedBy } });
  for (const order of [
    [a, b],
    [b, a],
  ]) {
    expect(await decide(order, await by(a.issuer, "rsa", "rsa"))).toBe("allowed");
    expect(await decide(order, await by(b.issuer, "other", "other"))).toBe("allowed");
    expect(await decide(order, await by(a.issuer, "other", "other"))).toBe("refused");
    expect(await decide(order, await by(a.issuer, "other", "rsa"))).toBe("refused");
    expect(await decide(order, await by(b.issuer, "rsa", "rsa"))).toBe("refused");
  }
});

test.each<[what: string, headers: Record<string, "a" | "b">, query: "a" | "b" | "", decision: string]>([
  ["each at its own", { "x-token": "a", authorization: "b" }, "", "allowed"],
  ["one's at both", { "x-token": "a", authorization: "a" }, "", "401 the token's issuer is not configured"],
  ["the other's at both", { "x-token": "b", authorization: "b" }, "", "401 the token's issuer is not configured"],
  ["one's at its own and as the other's parameter", { "x-token": "a" }, "a", "401 the token's issuer is not configured"],
  ["the other's at both of its places", { authorization: "b" }, "b", "allowed"],
])("an issuer's token does not count at another issuer's place: %s", async (_, given, query, decision) => {
  const set = { keys: [await publicKey("ec")] };
  answer = (response) => response.end(JSON.stringify(set));
  const jwksUri = `${origin}/keys`;
  const other = "https://other.example";
  const tokens = { a: await token(), b: await token({ claims: { iss: other } }) };
  const authentications: JwtAuthentication[] = [
    { issuer, jwksUri, fromHeaders: [{ name: "x-token" }] },
    { issuer: other, jwksUri },
  ];
  const header = (name: string) => {
    const whose = given[name];
    return whose && `${name === "authorization" ? "Bearer " : ""}${tokens[whose]}`;
  };
  const request = { header, query: query && `access_token=${tokens[query]}` };
  const jwt = { kind: "jwt" as const, authentications, authorizations: [] };
  const decided = await check.check(request, jwt, "shop");
  const text = decided.kind === "allowed" ? "allowed" : `${decided.status} ${decided.reason}`;
  expect(text).toBe(decision);
}); // prettier-ignore

type Given = "good" | "forged" | "long" | undefined;

test.each<[what: string, own: Given, other: Given, decision: string]>([
  ["one issuer's token at its place", "good", undefined, "allowed"],
  ["good ones at both places", "good", "good", "allowed"],
  ["a forged one at the other issuer's place", "good", "forged", badSignature],
  ["a forged one at the first place", "forged", "good", badSignature],
  ["one that is too long at the other's", "good", "long", "401 the token is malformed"],
  ["only one that is too long", undefined, "long", "403 the request has no token"],
  ["none", undefined, undefined, "403 the request has no token"],
])("with issuers at different places, %s: %s and %s", async (_, own, other, decision) => {
  const set = { keys: [await publicKey("ec")] };
  answer = (response) => response.end(JSON.stringify(set));
  const jwksUri = `${origin}/keys`;
  const authentications: JwtAuthentication[] = [
    { issuer, jwksUri, fromHeaders: [{ name: "x-token" }] },
    { issuer: "https://other.example", jwksUri },
  ];
  const make = async (iss: string, kind: Given) => {
    if (kind === undefined) return undefined;
    if (kind === "long") return "a".repeat(20_000);
    const pair = kind === "good" ? pairs.ec : await generateKeyPair("ES256");
    return token({ pair, claims: { iss } });
  };
  const headers: Record<string, string | undefined> = {
    "x-token": await make(issuer, own),
    authorization: await make("https://other.example", other).then((t) => t && `Bearer ${t}`),
  };
  const request = { header: (name: string) => headers[name], query: "" };
  const decided = await check.check(request, { kind: "jwt", authentications, authorizations: [] }, "shop");
  const text = decided.kind === "allowed" ? "allowed" : `${decided.status} ${decided.reason}`;
  expect(text).toBe(decision);
}); // prettier-ignore
