import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificates, ensureCertificates } from "./certificates.ts";

let dir = "";
let issued: Certificates;
beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "pki-"));
  issued = await ensureCertificates(dir);
});
afterAll(() => rmSync(dir, { recursive: true }));

describe("the platform's certificates", () => {
  test("are signed by its own authority", () => {
    const ca = new X509Certificate(issued.ca);
    expect(ca.ca).toBe(true);
    for (const name of ["apiServer", "webhook", "admin", "gateway"] as const) {
      const certificate = new X509Certificate(issued[name].cert);
      expect(certificate.verify(ca.publicKey)).toBe(true);
      expect(certificate.ca).toBe(false);
    }
  });

  test("have an authority of its own for the API server's towards other servers", () => {
    const { ca, cert } = issued.frontProxy;
    const certificate = new X509Certificate(cert);
    expect(certificate.subject).toBe("CN=front-proxy-client");
    expect(certificate.verify(new X509Certificate(ca).publicKey)).toBe(true);
    expect(certificate.verify(new X509Certificate(issued.ca).publicKey)).toBe(false);
  });

  test("name the server's addresses and the client's group", () => {
    expect(new X509Certificate(issued.apiServer.cert).subjectAltName).toContain("127.0.0.1");
    expect(new X509Certificate(issued.admin.cert).subject).toContain("O=system:masters");
  });

  test("are kept, with keys for their owner only", async () => {
    expect(await ensureCertificates(dir)).toEqual(issued);
    expect(statSync(path.join(dir, "admin.key")).mode & 0o777).toBe(0o600);
  });
});
