/**
 * The platform's own certificate authority and the certificates that it signs: the API server's,
 * the webhook server's, and the client certificates of the kubeconfigs. Kept under `<dataDir>/pki`,
 * renewed at start when less than a month is left, or when one names another subject than it should.
 *
 * The X.509 library is heavy and only needed when something is missing, so it is used by a process
 * of its own (`issue-certificates.ts`) and never loaded into the platform.
 */
import { execFile } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { certificatesProgram } from "../programs.ts";
import { certificateFolders, type CertificateName, subjects } from "./certificate-subjects.ts";

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
  /** Of the administration of events. */
  events: KeyPair;
  /** A member of `system:masters`: what `kubeconfig` holds. */
  admin: KeyPair;
  /** In no group but its own: see identities.ts. */
  gateway: KeyPair;
  /** The API server's towards aggregated API servers, and the authority that only it is of. */
  frontProxy: KeyPair & { ca: string };
}

const renewBeforeMs = 30 * 24 * 3600 * 1000;

/** An issuer whose platform was killed may still be writing when the next one does. */
const maxAttempts = 3;

export async function ensureCertificates(dir: string): Promise<Certificates> {
  const isIncomplete = (folder: string) => !isComplete(dir, folder);
  for (let attempt = 1; Object.keys(certificateFolders).some(isIncomplete); attempt++) {
    if (attempt > maxAttempts)
      throw new Error(
        `the certificates in ${dir} are still incomplete or invalid after ${maxAttempts} attempts to issue them`,
      );
    const args = [certificatesProgram(), dir];
    try {
      await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
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
    events: pair("events"),
    admin: pair("admin"),
    gateway: pair("gateway"),
    frontProxy: {
      ...pair("front-proxy/frontProxy"),
      ca: readFileSync(path.join(dir, "front-proxy/ca.crt"), "utf8"),
    },
  };
}

/** Whether a folder of the directory has all of its certificates. */
export function isComplete(dir: string, folder: string): boolean {
  return ["ca", ...(certificateFolders[folder] ?? [])].every(
    (name) => certificateProblem(path.join(dir, folder), name) === undefined,
  );
}

/** Why a certificate of the directory cannot be used, `ca` or one that it has signed; undefined when it can. */
export function certificateProblem(dir: string, name: string): string | undefined {
  const file = path.join(dir, `${name}.crt`);
  const keyFile = path.join(dir, `${name}.key`);
  if (!existsSync(file) || !existsSync(keyFile)) return "it is missing";
  try {
    const certificate = new X509Certificate(readFileSync(file));
    if (Date.parse(certificate.validTo) - Date.now() < renewBeforeMs)
      return "it is about to expire";
    if (Date.parse(certificate.validFrom) > Date.now()) return "it is not valid yet";
    // A kill between two files leaves the key of one certificate next to another certificate.
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile))))
      return "its key is another certificate's";
    if (name === "ca") return undefined;
    const ca = new X509Certificate(readFileSync(path.join(dir, "ca.crt")));
    if (!certificate.verify(ca.publicKey)) return "another authority has signed it";
    const { commonName, organisations } = subjects[name as CertificateName];
    const wanted = [`CN=${commonName}`, ...organisations.map((each) => `O=${each}`)].sort();
    // A line for each part, in the order of the issuer's.
    const isOurs = certificate.subject.split("\n").sort().join("\n") === wanted.join("\n");
    return isOurs ? undefined : "it names another subject than it should";
  } catch (error) {
    return `it cannot be read: ${(error as Error).message}`;
  }
}
