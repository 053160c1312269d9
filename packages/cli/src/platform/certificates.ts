/**
 * The platform's own certificate authority and the certificates that it signs: the API server's,
 * the webhook server's, and the client certificates of the kubeconfigs. Kept under `<dataDir>/pki`,
 * renewed at start when less than a month is left.
 *
 * The X.509 library is heavy and only needed when something is missing, so it is used by a process
 * of its own (`issue-certificates.ts`) and never loaded into the platform.
 */
import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

export interface KeyPair {
  /** PEM. */
  cert: string;
  /** PEM, PKCS #8. */
  key: string;
}

export interface Certificates {
  /** PEM of the authority that signed all of them. */
  ca: string;
  apiServer: KeyPair;
  webhook: KeyPair;
  /** A member of `system:masters`: what `kubeconfig` holds. */
  admin: KeyPair;
  gateway: KeyPair;
}

export const certificateNames = ["apiServer", "webhook", "admin", "gateway"] as const;

const renewBeforeMs = 30 * 24 * 3600 * 1000;

export async function ensureCertificates(dir: string): Promise<Certificates> {
  if (!isComplete(dir)) {
    const issuer = path.join(import.meta.dirname, "issue-certificates.ts");
    try {
      await promisify(execFile)(process.execPath, [issuer, dir], { timeout: 60_000 });
    } catch (error) {
      throw new Error(`issuing certificates in ${dir}`, { cause: error });
    }
  }
  const pair = (name: string): KeyPair => ({
    cert: readFileSync(path.join(dir, `${name}.crt`), "utf8"),
    key: readFileSync(path.join(dir, `${name}.key`), "utf8"),
  });
  return {
    ca: readFileSync(path.join(dir, "ca.crt"), "utf8"),
    apiServer: pair("apiServer"),
    webhook: pair("webhook"),
    admin: pair("admin"),
    gateway: pair("gateway"),
  };
}

function isComplete(dir: string): boolean {
  return ["ca", ...certificateNames].every((name) => {
    const file = path.join(dir, `${name}.crt`);
    if (!existsSync(file) || !existsSync(path.join(dir, `${name}.key`))) return false;
    const { validTo } = new X509Certificate(readFileSync(file));
    return Date.parse(validTo) - Date.now() > renewBeforeMs;
  });
}
