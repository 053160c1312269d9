/** The certificate of a private authority that registries have theirs from. */
import { X509Certificate } from "node:crypto";
import { readText } from "./text-file.ts";
import { UserError } from "./user-error.ts";

/** It goes through the environment of builds, of which Linux takes 128 KiB for each variable. */
const maxBytes = 100_000;
const certificate = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g;

export const pemWayOut =
  "it is the authority's certificate in PEM, which begins with -----BEGIN CERTIFICATE-----";

/** What is wrong with it, as the end of a sentence; nothing of an empty text. */
export function authorityProblem(pem: unknown): string | undefined {
  if (typeof pem !== "string") return "is not a text";
  if (pem.trim() === "") return undefined;
  if (Buffer.byteLength(pem) > maxBytes) return `is larger than ${maxBytes / 1000} kB`;
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem))
    return "has a private key, which only the authority may have";
  const found = pem.match(certificate) ?? [];
  try {
    const serials = found.map((each) => new X509Certificate(each).serialNumber);
    return serials.length > 0 ? undefined : "has no certificate";
  } catch {
    return "has a certificate that cannot be read";
  }
}

/** Of a file; a UserError where it has none. */
export function readAuthority(file: string): string {
  const pem = readText(file);
  const problem = pem.trim() === "" ? "is empty" : authorityProblem(pem);
  if (problem) throw new UserError(`${file} ${problem}`, pemWayOut);
  return pem;
}
