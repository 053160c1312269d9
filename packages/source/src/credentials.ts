import { GitError } from "./git-error.ts";

/** What a server is shown. */
export type GitCredentials =
  | { type: "basic"; username: string; password: string }
  | {
      type: "key";
      /** Private key, PEM or OpenSSH. */
      key: string;
      passphrase?: string;
      /** Without it, whatever host key the server shows is accepted. */
      knownHosts?: string;
    };

export type AuthType = GitCredentials["type"];

/** Secret types whose keys are meant for an `auth.type`. */
const secretTypes: Record<AuthType, readonly string[]> = {
  basic: ["Opaque", "kubernetes.io/basic-auth"],
  key: ["Opaque", "kubernetes.io/ssh-auth"],
};

export function assertSecretType(name: string, secretType: string, type: AuthType): void {
  if (secretTypes[type].includes(secretType)) return;
  throw new GitError(
    "temporary",
    `inconsistent secret type: Secret ${name} is of type ${secretType}, and auth.type is ${type}`,
  );
}

/** Takes them out of a Secret: `valueOf` gives the text under a key of it. */
export function readCredentials(
  type: AuthType,
  valueOf: (key: string) => string | undefined,
): GitCredentials {
  if (type === "basic") {
    const username = oneLine("username", required("username", valueOf("username")));
    return {
      type,
      username,
      password: oneLine("password", required("password", valueOf("password"))),
    };
  }
  const key = required("key", valueOf("key") ?? valueOf("ssh-privatekey"));
  const passphrase = valueOf("password");
  const knownHosts = valueOf("known_hosts");
  return {
    type,
    // Keys that went through an editor or a form lack their line end, or have too much of it.
    key: `${key.replaceAll("\r\n", "\n").trim()}\n`,
    ...(passphrase ? { passphrase: oneLine("password", passphrase) } : {}),
    ...(knownHosts?.trim() ? { knownHosts: `${knownHosts.trim()}\n` } : {}),
  };
}

/** What of them must not be shown, even if a server sends it back. */
export function secretsOf(credentials: GitCredentials | undefined): string[] {
  if (!credentials) return [];
  if (credentials.type === "basic") {
    const { username, password } = credentials;
    const header = Buffer.from(`${username}:${password}`).toString("base64");
    return [password, encodeURIComponent(password), header];
  }
  const lines = credentials.key.split("\n").filter((line) => line.length > 16);
  return [...lines, ...(credentials.passphrase ? [credentials.passphrase] : [])];
}

function required(key: string, value: string | undefined): string {
  if (value?.trim()) return value;
  throw new GitError("temporary", `the Secret of source.gitRepository.auth has no key ${key}`);
}

/** What was written with `echo` ends with a line end; one within it would be an injection. */
function oneLine(key: string, value: string): string {
  const text = value.replace(/\r?\n$/, "");
  // oxlint-disable-next-line no-control-regex -- each ends a line for some program
  if (!/[\n\r\u0000]/.test(text)) return text;
  throw new GitError(
    "temporary",
    `${key} in the Secret of source.gitRepository.auth contains a line break`,
  );
}
