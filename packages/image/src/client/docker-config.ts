import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Credentials } from "./authorization.ts";
import { askCredentialHelper } from "./credential-helper.ts";

/** One of the `auths`; with an identity token the password is empty. */
interface AuthEntry {
  auth?: string;
  username?: string;
  password?: string;
  identitytoken?: string;
}

interface DockerConfig {
  auths?: Record<string, AuthEntry>;
  /** Registry host → the helper that knows it: `docker-credential-<name>`. */
  credHelpers?: Record<string, string>;
  /** The helper for all others. */
  credsStore?: string;
}

/** Looks up who we are at a registry's host. */
export type CredentialSource = (host: string) => Promise<Credentials | undefined>;

/**
 * Credentials of a docker `config.json` in `directory`, by registry host: from its `auths`, or from the credential
 * helpers that it names, called once for each host. A missing file means none. Keys may be hosts or URLs, as `docker
 * login` and Kubernetes' Secrets write them. The `auths` of `internal.json` next to it count too: a build may start
 * from an image in another registry than the one it pushes to, and each has a Secret of its own.
 */
export function readDockerConfig(directory: string): CredentialSource {
  const file = join(directory, "config.json");
  const text = readIfThere(file);
  if (text === undefined) return () => Promise.resolve(undefined);
  const { auths: ours = {}, credHelpers = {}, credsStore } = parse(text, file);
  const auths = { ...furtherAuths(directory), ...ours };
  const credentials = new Map<string, Credentials>();
  for (const [key, entry] of Object.entries(auths)) {
    const read = credentialsOf(entry);
    if (read) credentials.set(hostOf(key), read);
  }
  // Helpers know the key as it is in the file.
  const keys = new Map(Object.keys({ ...auths, ...credHelpers }).map((key) => [hostOf(key), key]));
  const asked = new Map<string, Promise<Credentials | undefined>>();
  return (name) => {
    const host = name === "docker.io" ? "index.docker.io" : name;
    const key = keys.get(host);
    const helper = credHelpers[key ?? host] ?? credsStore;
    const known = credentials.get(host);
    if (helper === undefined || (known && !credHelpers[key ?? host])) return Promise.resolve(known);
    let answer = asked.get(host);
    if (!answer) asked.set(host, (answer = askCredentialHelper(helper, key ?? host)));
    return answer;
  };
}

/**
 * Certificates (PEM) of private authorities by registry host, in Docker's layout: `certs.d/<host>/ca.crt`; for
 * all hosts without one, `ca.crt` in the directory itself.
 */
export function readCertificates(directory: string): (host: string) => string | undefined {
  const read = new Map<string, string | undefined>();
  return (host) => {
    // A host comes from an image's name, whose grammar has neither `/` nor `..`.
    if (!read.has(host)) {
      const own = readIfThere(join(directory, "certs.d", host, "ca.crt"));
      read.set(host, own ?? readIfThere(join(directory, "ca.crt")));
    }
    return read.get(host);
  };
}

function furtherAuths(directory: string): DockerConfig["auths"] {
  const file = join(directory, "internal.json");
  const text = readIfThere(file);
  return text === undefined ? {} : parse(text, file).auths;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Error(`reading registry settings ${file}`, { cause });
  }
}

function parse(text: string, file: string): DockerConfig {
  try {
    return JSON.parse(text) as DockerConfig;
  } catch {
    // The parser's message quotes the text, which holds passwords.
    throw new Error(`reading registry settings ${file}: not valid JSON`);
  }
}

function credentialsOf(entry: AuthEntry): Credentials | undefined {
  if (entry.identitytoken) return { identityToken: entry.identitytoken };
  if (entry.username !== undefined && entry.password !== undefined)
    return { username: entry.username, password: entry.password };
  const pair = Buffer.from(entry.auth ?? "", "base64").toString();
  const colon = pair.indexOf(":");
  if (colon < 0) return undefined;
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, "").split("/")[0] ?? key;
}
