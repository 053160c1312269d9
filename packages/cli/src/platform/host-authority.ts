/**
 * The authority that signs certificates for hosts of APIRules on this machine: another one than the platform's own,
 * because people are to trust it in their browsers. It can sign for names of this machine and of private networks only.
 * Its key stays with the platform; the gateway gets certificates.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { hostCertificateProgram } from "../programs.ts";

/** PEM. */
export interface IssuedPair {
  crt: string;
  key: string;
}

export interface HostAuthority {
  /** PEM; undefined before the first certificate has been issued. */
  certificate(): string | undefined;
  /** One certificate for all of these hosts. */
  issue(hosts: readonly string[]): Promise<IssuedPair>;
}

export const hostAuthorityName = "hosts-ca";
const timeoutMs = 30_000;

/** @param dir the directory of the platform's certificates */
export function openHostAuthority(dir: string): HostAuthority {
  const file = path.join(dir, `${hostAuthorityName}.crt`);
  return {
    certificate: () => (existsSync(file) ? readFileSync(file, "utf8") : undefined),
    async issue(hosts) {
      // The X.509 library is heavy, and needed seldom.
      const args = [hostCertificateProgram(), dir, ...hosts];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: timeoutMs });
      return JSON.parse(stdout) as IssuedPair;
    },
  };
}
