/** The authority for hosts of APIRules: what it signs, what clients that trust it accept. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect, createServer } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HostAuthority, openHostAuthority } from "./host-authority.ts";

let dir = "";
let authority: HostAuthority;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "hosts-"));
  authority = openHostAuthority(dir);
});
afterAll(() => rmSync(dir, { recursive: true }));

/** As a client that trusts the authority, and nothing else: undefined, or why it does not go on. */
async function problemAt(host: string): Promise<string | undefined> {
  const { crt: cert, key } = await authority.issue([host]);
  const server = createServer({ cert, key }, (socket) => socket.on("error", () => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const ca = authority.certificate() ?? "";
  const socket = connect({ host: "127.0.0.1", port, servername: host, ca });
  const problem = await once(socket, "secureConnect").then(
    () => undefined,
    (error: Error) => error.message,
  );
  socket.destroy();
  server.close();
  return problem;
}

test("it is made with the first certificate, which names all hosts and lasts a year", async () => {
  expect(authority.certificate()).toBeUndefined();
  const { crt } = await authority.issue(["dice.localhost", "*.shop.test"]);
  const certificate = new X509Certificate(crt);
  expect(certificate.subjectAltName).toBe("DNS:dice.localhost, DNS:*.shop.test");
  expect(certificate.ca).toBe(false);
  const days = (certificate.validToDate.getTime() - Date.now()) / 86_400_000;
  expect(Math.round(days)).toBe(365);
  const signer = new X509Certificate(authority.certificate() ?? "");
  expect(certificate.verify(signer.publicKey)).toBe(true);
});

test("its key is for its owner only, and it stays the same", async () => {
  const before = authority.certificate();
  await authority.issue(["dice.localhost"]);
  expect(authority.certificate()).toBe(before);
  expect(statSync(path.join(dir, "hosts-ca.key")).mode & 0o777).toBe(0o600);
});

test.each([
  ["dice.localhost", undefined],
  ["till.shop.internal", undefined],
  ["www.example.com", /permitted subtree violation/],
  ["localhost.example.com", /permitted subtree violation/],
])("who trusts it trusts it for %s: %s", async (host, problem) => {
  const found = await problemAt(host);
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(problem);
});

test("a key that is lost gives another authority", async () => {
  const before = authority.certificate();
  rmSync(path.join(dir, "hosts-ca.key"));
  await authority.issue(["dice.localhost"]);
  expect(authority.certificate()).not.toBe(before);
});

test("a broken key is an error, and no certificate is issued", async () => {
  writeFileSync(path.join(dir, "hosts-ca.key"), "broken");
  await expect(authority.issue(["dice.localhost"])).rejects.toThrow();
});
