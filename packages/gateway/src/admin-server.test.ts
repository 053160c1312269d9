import * as http from "node:http";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, countsToken, startBench } from "./testing/bench.ts";
import { type Listening } from "./http/listening.ts";

let bench: Bench;
let admin: Listening;
/** What the gateway reads when it is asked with a token that it does not know. */
let token: string | undefined;
let reads: number;
beforeEach(async () => {
  token = countsToken;
  reads = 0;
  const read = () => {
    reads++;
    return token;
  };
  bench = await startBench({ countsToken: read });
  admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
});
afterEach(async () => {
  await admin.close();
  await bench.close();
});

async function get(path: string, headers: http.OutgoingHttpHeaders) {
  const request = http.get({ host: "127.0.0.1", port: admin.port, path, headers, agent: false });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  return { response, status: response.statusCode, stop: () => request.destroy() };
}

const bearer = { authorization: `Bearer ${countsToken}` };

test.each<[string, http.OutgoingHttpHeaders, number]>([
  ["the token", bearer, 200],
  ["the token, as another client writes it", { authorization: `bearer ${countsToken}` }, 200],
  ["no token", {}, 401],
  ["an empty token", { authorization: "Bearer " }, 401],
  ["another token", { authorization: "Bearer other" }, 401],
  ["a part of the token", { authorization: `Bearer ${countsToken.slice(0, -1)}` }, 401],
  ["another scheme", { authorization: `Basic ${countsToken}` }, 401],
  ["much text", { authorization: `Bearer ${"a".repeat(10_000)}` }, 401],
])("/counts with %s", async (_, headers, status) => {
  const answer = await get("/counts", headers);
  expect(answer.status).toBe(status);
  if (status === 401) expect(answer.response.headers["www-authenticate"]).toBe("Bearer");
  answer.stop();
});

test("strangers cannot take the scaler's place", async () => {
  const strangers = await Promise.all(Array.from({ length: 40 }, () => get("/counts", {})));
  expect(new Set(strangers.map(({ status }) => status))).toEqual(new Set([401]));
  const scaler = await get("/counts", bearer);
  expect(scaler.status).toBe(200);
  scaler.stop();
});

test("a token that does not exist yet, or has changed, is read again, but not for each stranger", async () => {
  token = undefined;
  expect((await get("/counts", bearer)).status).toBe(401);
  for (let i = 0; i < 20; i++) await get("/counts", { authorization: `Bearer wrong-${i}` });
  expect(reads).toBe(1);
  token = countsToken;
  const statusOf = async () => {
    const answer = await get("/counts", bearer);
    answer.stop();
    return answer.status;
  };
  await expect.poll(statusOf, { timeout: 5_000 }).toBe(200);
});

test.each([
  ["localhost", 200],
  ["LOCALHOST:1", 200],
  ["127.0.0.1:8090", 200],
  ["[::1]:8090", 200],
  ["evil.example", 421],
  ["evil.example:8090", 421],
  ["127.0.0.1.evil.example", 421],
])("at a loopback address, Host %j is answered with %i (DNS rebinding)", async (host, status) => {
  for (const path of ["/metrics", "/healthz", "/counts"]) {
    const answer = await get(path, { host, ...bearer });
    expect(answer.status, path).toBe(status);
    answer.stop();
  }
});
