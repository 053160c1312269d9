import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Clock, systemClock } from "@spry/kube";
import { CompactSign } from "jose";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type ApiServer, createApiServer } from "../index.ts";

let now: number;
const clock: Clock = { ...systemClock, now: () => now };
const accounts = "/api/v1/namespaces/default/serviceaccounts";
const pods = "/api/v1/namespaces/default/pods";

let server: ApiServer;

beforeEach(async () => {
  now = Date.parse("2026-01-01T00:00:00Z");
  server = await createApiServer({ dataDir: ":memory:", clock });
  onTestFinished(() => server.close());
});

describe("a token is refused", () => {
  test.each<[string, (token: string) => string | Promise<string>]>([
    ["without a signature", (token) => `${token.split(".").slice(0, 2).join(".")}.`],
    ["that says it needs none", (token) => `${encoded({ alg: "none" })}.${token.split(".")[1]}.`],
    [
      "with other claims",
      (token) => withClaims(token, { sub: "system:serviceaccount:kube-system:default" }),
    ],
    ["signed with another key", forged],
    ["that is no token", () => "abc"],
    ["that is too long", (token) => token + "a".repeat(20_000)],
  ])("%s", async (_, change) => {
    const token = await requestToken();
    expect(await review(token)).toMatchObject({ authenticated: true });
    expect(await review(await change(token))).toEqual({ user: {}, error: "invalid bearer token" });
  });

  test("when its time is over, also if it was good before", async () => {
    const token = await requestToken({ expirationSeconds: 600 });
    expect(await review(token)).toMatchObject({ authenticated: true });
    now += 700_000;
    expect(await review(token)).toMatchObject({
      error: "[invalid bearer token, service account token has expired]",
    });
  });

  test("a year after a request for 31 years, whose answer says so", async () => {
    const expirationSeconds = 31 * 365 * 24 * 3600;
    const { spec, status } = await send("POST", `${accounts}/default/token`, {
      spec: { expirationSeconds },
    });
    expect(spec).toMatchObject({ expirationSeconds: 31_536_000 });
    expect(status).toMatchObject({ expirationTimestamp: "2027-01-01T00:00:00Z" });
    const { token } = status as { token: string };
    now = Date.parse("2026-12-31T23:59:00Z");
    expect(await review(token)).toMatchObject({ authenticated: true });
    now = Date.parse("2027-01-01T00:02:00Z");
    expect(await review(token)).toMatchObject({
      error: "[invalid bearer token, service account token has expired]",
    });
  });

  test("before its time", async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), "tokens-"));
    await server.close();
    server = await createApiServer({ dataDir, clock });
    const token = await requestToken();
    await server.close();
    now -= 120_000;
    server = await createApiServer({ dataDir, clock });
    expect(await review(token)).toMatchObject({
      error: "[invalid bearer token, service account token is not valid yet]",
    });
  });

  test("not for a clock that has been set back since it was issued", async () => {
    const token = await requestToken();
    now -= 3_600_000;
    expect(await review(token)).toMatchObject({ authenticated: true });
  });

  test("when the Pod that it is bound to is gone, or another one", async () => {
    const create = () =>
      send("POST", pods, {
        metadata: { name: "p" },
        spec: { containers: [{ name: "c", image: "i" }] },
      });
    const { metadata } = await create();
    const token = await requestToken({
      boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p", uid: metadata.uid },
    });
    expect(await review(token)).toMatchObject({
      user: {
        username: "system:serviceaccount:default:default",
        groups: [
          "system:serviceaccounts",
          "system:serviceaccounts:default",
          "system:authenticated",
        ],
        extra: {
          "authentication.kubernetes.io/pod-name": ["p"],
          "authentication.kubernetes.io/pod-uid": [metadata.uid],
        },
      },
    });
    await send("DELETE", `${pods}/p?gracePeriodSeconds=0`);
    expect(await review(token)).toMatchObject({
      error: expect.stringContaining("has been invalidated"),
    });
    await create();
    expect(await review(token)).toMatchObject({ error: expect.stringContaining("pod UID") });
  });
});

test("the key is private, outlives a restart, and is never replaced in silence", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tokens-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const file = path.join(dataDir, "service-account.key");
  let persistent = await createApiServer({ dataDir, clock });
  const token = await requestToken({}, persistent);
  await persistent.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  persistent = await createApiServer({ dataDir, clock });
  expect(await review(token, persistent)).toMatchObject({ authenticated: true });
  await persistent.close();
  const good = readFileSync(file);
  writeFileSync(file, "damaged");
  await expect(createApiServer({ dataDir, clock })).rejects.toThrow(`${file} holds no private key`);
  writeFileSync(file, good);
});

async function requestToken(spec: object = {}, from = server): Promise<string> {
  const { status } = await send("POST", `${accounts}/default/token`, { spec }, from);
  return status.token as string;
}

async function review(token: string, by = server): Promise<unknown> {
  const body = { kind: "TokenReview", apiVersion: "authentication.k8s.io/v1", spec: { token } };
  return (await send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body, by)).status;
}

interface Answered {
  spec?: object;
  metadata: { uid: string };
  status: Record<string, unknown>;
}

async function send(method: string, where: string, body?: object, to = server): Promise<Answered> {
  const headers = { "content-type": "application/json" };
  const request = new Request(`http://kubernetes.internal${where}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await (await to.transport()(request)).json()) as Answered;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function claimsOf(token: string): object {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as object;
}

function withClaims(token: string, more: object): string {
  const [header, , signature] = token.split(".");
  return `${header}.${encoded({ ...claimsOf(token), ...more })}.${signature}`;
}

function forged(token: string): Promise<string> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return new CompactSign(Buffer.from(JSON.stringify(claimsOf(token))))
    .setProtectedHeader({ alg: "ES256" })
    .sign(privateKey);
}
