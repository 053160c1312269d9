/** What callers who have not logged in can make the server ask of an identity provider. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ExchangeLimit } from "./exchange-limit.ts";
import { RequestError } from "./http.ts";
import { LoginRoutes } from "./login-routes.ts";
import { OidcLogins } from "./oidc.ts";
import { Sessions } from "./sessions.ts";

/** An identity provider that answers no exchange, or renews the login `mine`. */
const provider = createServer((request, response) => {
  const url = `http://127.0.0.1:${portOf(provider)}`;
  if (request.method === "POST") {
    asked++;
    if (answers) void text(request).then((form) => renew(form, url, response));
    return;
  }
  response.end(JSON.stringify({ issuer: url, authorization_endpoint: url, token_endpoint: url }));
});
const server = createServer((request, response) => {
  routes.answer(request.url ?? "", request, response).catch((error: unknown) => {
    response.writeHead(error instanceof RequestError ? error.status : 500).end();
  });
});
const portOf = (of: typeof server) => (of.address() as AddressInfo).port;
let routes: LoginRoutes;
let asked: number;
let answers: boolean;

function renew(form: string, iss: string, response: ServerResponse): void {
  if (new URLSearchParams(form).get("refresh_token") !== "mine")
    return void response.writeHead(400).end(JSON.stringify({ error: "invalid_grant" }));
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const part = (content: object) => Buffer.from(JSON.stringify(content)).toString("base64url");
  const claims = part({ iss, aud: "it", sub: "me", exp, iat: exp - 3_600 });
  response.end(JSON.stringify({ id_token: `${part({ alg: "RS256" })}.${claims}.c2ln` }));
}

beforeEach(async () => {
  asked = 0;
  answers = false;
  for (const each of [provider, server]) {
    each.listen(0, "127.0.0.1");
    await once(each, "listening");
  }
  const options = {
    issuer: `http://127.0.0.1:${portOf(provider)}`,
    clientId: "it",
    scopes: [],
    url: new URL("http://127.0.0.1"),
  };
  const sessions = new Sessions(Buffer.alloc(32));
  const oidc = new OidcLogins(options);
  routes = new LoginRoutes({ sessions, hasLinks: false, loginCommand: "", oidc });
});
afterEach(() => {
  for (const each of [provider, server]) {
    each.closeAllConnections();
    each.close();
  }
});

const post = (path: string, body: object) =>
  fetch(`http://127.0.0.1:${portOf(server)}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
  }).then(
    ({ status }) => status,
    () => 0,
  );

test.each([
  ["/login/oidc/finish", { code: "a", verifier: "b", nonce: "c" }],
  ["/login/oidc/renew", { refresh: "a" }],
])("no more than 32 exchanges are under way at once: %s", async (path, body) => {
  const first = Array.from({ length: 32 }, () => post(path, body));
  await expect.poll(() => asked).toBe(32);
  expect(await post(path, body)).toBe(429);
  expect(asked).toBe(32);
  provider.closeAllConnections();
  expect(new Set(await Promise.all(first))).toEqual(new Set([502]));
});

test("exchanges of clients that have not logged in leave logins their renewals", async () => {
  answers = true;
  expect(await post("/login/oidc/renew", { refresh: "mine" })).toBe(200);
  const others = Array.from({ length: 100 }, (_, i) => `guess-${i}`);
  const seen = [];
  for (const refresh of others) seen.push(await post("/login/oidc/renew", { refresh }));
  expect(seen).toContain(429);
  answers = false;
  const finish = { code: "a", verifier: "b", nonce: "c" };
  const before = asked;
  const waiting = Array.from({ length: 32 }, () => post("/login/oidc/finish", finish));
  await expect.poll(() => asked).toBe(before + 32);
  answers = true;
  expect(await post("/login/oidc/finish", finish)).toBe(429);
  expect(await post("/login/oidc/renew", { refresh: "mine" })).toBe(200);
  provider.closeAllConnections();
  await Promise.all(waiting);
});

test("a body beyond its limit is not read, and no exchange", async () => {
  expect(await post("/login/oidc/renew", { refresh: "x".repeat(20_000) })).toBe(413);
  expect(asked).toBe(0);
});

test("an address has 50 exchanges at once, 10 more in each second, and leaves others theirs", async () => {
  let now = 0;
  const limit = new ExchangeLimit(() => now);
  const made = async (address: string, count: number) => {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      await limit.run(address, async () => sum++).catch(() => {});
    }
    return sum;
  };
  expect(await made("a", 60)).toBe(50);
  expect(await made("b", 60)).toBe(50);
  now += 1_000;
  expect(await made("a", 60)).toBe(10);
  now += 3_600_000;
  expect(await made("a", 60)).toBe(50);
});
