/** Program: writes a certificate for the hosts given to its output, as JSON. See host-authority.ts. */
import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Authority, issueLeaf, newAuthority, readAuthority } from "../x509.ts";
import { hostAuthorityName } from "./host-authority.ts";

const day = 24 * 3600 * 1000;
const authorityDays = 3650;
/** Apple's limit for certificates by authorities that users have added is 825 days; public ones have 398. */
const leafDays = 365;
/** Names that no one can own on the Internet (RFC 6761, RFC 6762, RFC 8375, and ICANN's `internal`). */
const domains = ["localhost", "test", "local", "internal", "home.arpa"];

const [dir = ".", ...hosts] = process.argv.slice(2);
const authority = await loadAuthority();
const { cert, key } = await issueLeaf(authority, {
  subject: "CN=Spry gateway",
  now: Date.now(),
  lifetimeMs: leafDays * day,
  names: hosts.map((value) => ({ type: "dns", value })),
});
console.log(JSON.stringify({ crt: cert, key }));

/** The one in the directory is kept, so that systems which trust it continue to do so. */
async function loadAuthority(): Promise<Authority> {
  const [crtFile, keyFile] = ["crt", "key"].map((end) =>
    path.join(dir, `${hostAuthorityName}.${end}`),
  ) as [string, string];
  if (existsSync(crtFile) && existsSync(keyFile)) {
    const crt = readFileSync(crtFile, "utf8");
    const isLasting = new X509Certificate(crt).validToDate.getTime() - Date.now() > leafDays * day;
    if (isLasting) return readAuthority(crt, readFileSync(keyFile, "utf8"));
  }
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const validity = { now: Date.now(), lifetimeMs: authorityDays * day };
  const made = await newAuthority("CN=Spry hosts of this machine", validity, domains);
  write(keyFile, made.keyPem);
  write(crtFile, made.cert);
  return made;
}

function write(file: string, content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}
