/** APIRules on a whole platform: `spry expose`, kubectl's view, and a certificate that a Gateway names. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startIssuer } from "../support/issuer.ts";
import { Platform, root } from "../support/platform.ts";

const chromium = "/usr/bin/chromium";
const issuerPort = await freePort();
const platform = new Platform({
  args: ["--no-example", `--allow-loopback=127.0.0.1:${issuerPort}`],
});
beforeAll(async () => {
  await platform.start();
  const { code, stderr } = await platform.spry(["apply", "-f", path.join(root, "examples/hello")]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
}, 180_000);
afterAll(() => platform.remove());

const table = async (what: string) => {
  const [, ...rows] = (await platform.k(`get ${what}`)).trim().split("\n");
  return rows.map((row) => row.split(/\s+/));
};

test("a Function is exposed with one command, and kubectl shows host and state", async () => {
  const { code, stdout, stderr } = await platform.spry(["expose", "hello"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  expect(stdout.trim()).toMatch(/^https:\/\/hello\.localhost\S*\/ {2}open to everyone$/);
  expect(await table("apirules")).toEqual([["hello", "Ready", '["hello"]']]);
  // In a browser, where there is one.
  const opened = await platform.spry(["open", "hello"]);
  expect(opened.stdout.trim()).toBe(stdout.split(" ")[0]);
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
  const issuer = await startIssuer("127.0.0.1", issuerPort);
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
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
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
  expect(await curl("--http2", "-w", " %{http_version}")).toBe("access is denied\n 2");
  // Plain HTTP leads there.
  const answer = await platform.call("dice", { path: "/a?b" });
  expect(answer).toMatchObject({ status: 301, headers: { location: `${url}a?b` } });
  const trusted = await platform.spry(["trust", "--data-dir", platform.dataDir]);
  expect(trusted).toMatchObject({ code: 0, stdout: `${ca}\n` });
  await issuer.close();
});

const page = `
apiVersion: serverless.kyma-project.io/v1alpha2
kind: Function
metadata: { name: page }
spec:
  runtime: nodejs24
  source:
    inline:
      source: |
        const script = "document.title = performance.getEntriesByType('navigation')[0].nextHopProtocol";
        module.exports = { main: (event) => {
          event.extensions.response.setHeader("content-type", "text/html");
          return "<title>?</title><script>" + script + "</script>";
        } };
`;

/** Of a host's certificate, which our authority has issued: for browsers, that do not know the authority. */
async function keyDigest(url: string): Promise<string> {
  const { hostname: servername, port } = new URL(url);
  const ca = readFileSync(path.join(platform.dataDir, "pki/hosts-ca.crt"));
  const socket = connect({ host: "127.0.0.1", port: Number(port), servername, ca });
  await once(socket, "secureConnect");
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  const key = certificate?.publicKey.export({ type: "spki", format: "der" }) ?? "";
  return createHash("sha256").update(key).digest("base64");
}

test.skipIf(!existsSync(chromium))("a browser opens *.localhost, over HTTP/2", async () => {
  await platform.k("apply -f -", page);
  await platform.k("wait --for=condition=Running function/page --timeout=100s");
  const { stdout } = await platform.spry(["expose", "page"]);
  const [url = ""] = stdout.split(" ");
  let pin = "";
  // It follows within moments.
  await expect.poll(async () => (pin = await keyDigest(url).catch(() => ""))).not.toBe("");
  const open = async () => {
    const profile = `--user-data-dir=${path.join(platform.dataDir, "browser")}`;
    const trust = `--ignore-certificate-errors-spki-list=${pin}`;
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", profile, trust];
    const command = [...flags, "--timeout=20000", "--dump-dom", url];
    const opened = await promisify(execFile)(chromium, command, { timeout: 60_000 });
    return opened.stdout;
  };
  await expect.poll(open).toContain("<title>h2</title>");
  await platform.spry(["delete", "page", "--yes"]);
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

test("its host is taken away again", async () => {
  const asked = await platform.spry(["unexpose", "hello"]);
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining("add --yes") as string });
  const taken = await platform.spry(["unexpose", "hello", "--yes"]);
  expect(taken).toMatchObject({ code: 0, stdout: "" });
  expect(taken.stderr).toMatch(/^apirule\/hello deleted: .+ no longer leads to hello\n$/);
  expect(await platform.k("get apirules -o name")).not.toContain("/hello\n");
  const again = await platform.spry(["unexpose", "hello", "--yes"]);
  expect(again.stderr).toContain("hello is not exposed");
  expect(await platform.spry(["expose", "hello"])).toMatchObject({ code: 0 });
});

test("a host is free again when its Function is deleted", async () => {
  const { code, stderr } = await platform.spry(["delete", "hello", "--yes"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
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
