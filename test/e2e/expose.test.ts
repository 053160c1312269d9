/** APIRules on a whole platform: `spry expose`, kubectl's view, and a certificate that a Gateway names. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startIssuer } from "../support/issuer.ts";
import { Platform, root } from "../support/platform.ts";

const platform = new Platform();
beforeAll(async () => {
  await platform.start();
  const { code, stderr } = await platform.spry(["apply", "-f", path.join(root, "examples/hello")]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
}, 180_000);
afterAll(() => platform.remove());

const table = async (what: string) => {
  const [, ...rows] = (await platform.k(`get ${what}`)).trim().split("\n");
  return rows.map((row) => row.split(/\s+/));
};

test("a Function is exposed with one command, and kubectl shows host and state", async () => {
  const { code, stdout, stderr } = await platform.spry(["expose", "hello"]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout.trim()).toMatch(/^https:\/\/hello\.localhost\S*\/ {2}open to everyone$/);
  expect(await table("apirules")).toEqual([["hello", "Ready", '["hello"]']]);
});

test("and limited with another", async () => {
  const issuer = "https://issuer.example";
  const keys = ["--jwks-uri", `${issuer}/keys`];
  const token = ["--jwt-issuer", issuer, ...keys, "--audience", "shop", "--scope", "read"];
  const { code, stdout, stderr } = await platform.spry([
    "expose",
    "hello",
    "--host",
    "hi",
    ...token,
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "apirule/hello applied\n" });
  expect(stdout).toContain(`with a token of ${issuer}, scope read, audience shop`);
  const rules = await platform.k(
    "get apirule hello -o jsonpath={.spec.rules[0].jwt.authorizations}",
  );
  expect(JSON.parse(rules)).toEqual([{ requiredScopes: ["read"], audiences: ["shop"] }]);
});

test("over HTTPS, a token decides who may call", async () => {
  const issuer = await startIssuer();
  const keys = ["--jwks-uri", `${issuer.url}/keys`];
  const { code, stdout, stderr } = await platform.spry([
    "expose",
    "hello",
    "--host",
    "dice",
    "--jwt-issuer",
    issuer.url,
    "--audience",
    "shop",
    ...keys,
  ]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const [url = ""] = stdout.split(" ");
  expect(new URL(url).port).toBe(new URL(platform.endpoints.gatewayTls).port);
  // Its certificate follows within moments; from then on the name and the authority are those that curl checks.
  const ca = path.join(platform.dataDir, "pki/hosts-ca.crt");
  const curl = async (...args: string[]) => {
    const { port } = new URL(url);
    const to = ["--resolve", `dice.localhost:${port}:127.0.0.1`, "-sS", "-w", " %{http_code}"];
    const command = ["--cacert", ca, ...to, ...args, url];
    return promisify(execFile)("curl", command).then(
      (done) => done.stdout,
      (error: { stderr: string }) => error.stderr,
    );
  };
  await expect.poll(() => curl(), { timeout: 10_000 }).toBe("access is denied\n 403");
  const bearer = async (aud: string) =>
    curl("-H", `authorization: Bearer ${await issuer.token({ aud })}`);
  expect(await bearer("shop")).toMatch(/ 200$/);
  expect(await bearer("other")).toBe("access is denied\n 403");
  expect(await curl("-H", "authorization: Bearer x")).toBe("the request has no valid token\n 401");
  // Plain HTTP leads there.
  const answer = await platform.call("dice", { path: "/a?b" });
  expect(answer).toMatchObject({ status: 301, headers: { location: `${url}a?b` } });
  const trusted = await platform.spry(["trust", "--data-dir", platform.dataDir]);
  expect(trusted).toMatchObject({ code: 0, stdout: `${ca}\n` });
  await issuer.close();
});

test("what cannot be exposed is a sentence", async () => {
  const missing = await platform.spry(["expose", "nothing"]);
  expect(missing.code).toBe(1);
  expect(missing.stderr).toContain("Function nothing not found in namespace default");
  const taken = await platform.spry(["expose", "hello", "--host", "a.b.localhost"]);
  expect(taken.code).toBe(1);
  expect(taken.stderr).toContain(
    "Host is reserved for Functions: only one label may precede .localhost",
  );
});

test("a host is free again when its Function is deleted", async () => {
  const { code, stderr } = await platform.spry(["delete", "hello", "--yes"]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  await expect.poll(() => platform.k("get apirules -o name")).toBe("");
});

test("the gateway may read the certificates, and no other Secret", async () => {
  const as = "--as=spry:gateway -n kyma-system";
  const may = (what: string) => platform.k(`auth can-i ${what} ${as}`).catch(() => "no");
  const [collected, other, rules] = await Promise.all([
    may("watch secrets/serverless-gateway-certificates"),
    may("get secrets/serverless-registry-config-internal"),
    may("watch apirules.gateway.kyma-project.io"),
  ]);
  expect([collected, other, rules].map((answer) => answer.trim())).toEqual(["yes", "no", "yes"]);
});
