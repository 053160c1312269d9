import { readFileSync } from "node:fs";
import { type LayerFile } from "../layer.ts";
import { UserError } from "./user-error.ts";

/** Shorter ones are words that stand anywhere. */
const shortest = 6;
const largestFile = 256 * 1024 * 1024;

/**
 * The secrets in files of package managers, in every form in which they may turn up: tokens and
 * passwords of an `.npmrc` (`_authToken`, `_auth`, `_password`), and what stands before the `@` of URLs.
 */
export function secretsIn(texts: readonly string[]): string[] {
  const found = new Set<string>();
  const add = (secret: string | undefined) => {
    const text = secret?.trim().replace(/^"(.*)"$/, "$1") ?? "";
    if (text.length >= shortest && !/^\$\{.*\}$/.test(text)) found.add(text);
  };
  for (const text of texts) {
    for (const [, key = "", value = ""] of text.matchAll(/^\s*([^#;=\n]*?)\s*=\s*(.*?)\s*$/gm)) {
      const setting = /(?:^|:)_(authToken|auth|password)$/.exec(key)?.[1];
      if (setting) add(value);
      // Both are base64: `user:password`, and the password alone.
      if (setting === "auth" || setting === "password") {
        const decoded = Buffer.from(value.replaceAll('"', ""), "base64").toString();
        add(decoded);
        add(decoded.slice(decoded.indexOf(":") + 1));
      }
    }
    for (const [, login = ""] of text.matchAll(/:\/\/([^/@\s"']+)@/g)) {
      const password = login.slice(login.indexOf(":") + 1);
      add(password);
      add(decoded(password));
      add(Buffer.from(decoded(login)).toString("base64"));
    }
  }
  return [...found].sort((a, b) => b.length - a.length);
}

const credentialLine =
  /^\s*"?(?:\/\/[^=]*:)?(?:_auth\w*|_password|username|email|otp|cert|certfile|key|keyfile)"?\s*=/i;

/** What an `.npmrc` says besides who we are. */
export function withoutCredentials(npmConfig: string): string {
  return npmConfig
    .split(/\r?\n|\r/)
    .filter((line) => !credentialLine.test(line))
    .map((line) => line.replace(/(:\/\/)[^/@\s"']+@/g, "$1"))
    .join("\n");
}

/** The same of a `pip.conf` or requirements.txt, where logins stand in URLs. */
export function withoutLogins(text: string): string {
  return text.replace(/(:\/\/)[^/@\s]+@/g, "$1");
}

/** With nothing of the secrets in it. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
}

/** Refuses files that hold a secret: an install script may have copied what it could read. */
export function assertNoSecrets(files: readonly LayerFile[], secrets: readonly string[]): void {
  if (secrets.length === 0) return;
  const wanted = secrets.map((secret) => Buffer.from(secret));
  for (const entry of files) {
    const inName = secrets.some((secret) =>
      ("link" in entry ? entry.link : entry.path).includes(secret),
    );
    if (inName || ("file" in entry && holds(readSome(entry.file), wanted)))
      throw new UserError(
        `dependencies: ${withoutSecrets(entry.path, secrets)} contains a credential of the package registry, which must not get into an image`,
      );
  }
}

const holds = (content: Buffer, wanted: readonly Buffer[]) =>
  wanted.some((secret) => content.includes(secret));

function readSome(file: string): Buffer {
  const content = readFileSync(file);
  if (content.length > largestFile) throw new UserError(`dependencies: ${file} is too large`);
  return content;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
