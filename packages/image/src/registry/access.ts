import { createHmac, randomBytes } from "node:crypto";
import { type IncomingMessage } from "node:http";
import { Htpasswd } from "./htpasswd.ts";
import { RegistryFailure } from "./registry-failure.ts";

export interface AccessOptions {
  /** File with the users and the bcrypt hashes of their passwords. Without one, everybody may do everything. */
  htpasswd?: string | undefined;
  /** Whether who says no name may read. Default no. */
  anonymousPull?: boolean | undefined;
}

/** bcrypt is slow on purpose: no more wrong passwords are looked at than these at a time. */
const checkLimit = 8;
/** Right passwords that are remembered: a registry has one user or two. */
const rememberedLimit = 64;

/** Throws when a request does not carry a user's name and password (HTTP Basic). */
export function accessCheck(options: AccessOptions): (request: IncomingMessage) => Promise<void> {
  const { htpasswd: file, anonymousPull = false } = options;
  if (file === undefined) return () => Promise.resolve();
  const users = new Htpasswd(file);
  const passwords = new Passwords(users);
  return async ({ method, headers: { authorization } }) => {
    if (authorization === undefined && anonymousPull && (method === "GET" || method === "HEAD"))
      return;
    const [scheme = "", encoded = ""] = (authorization ?? "").split(" ", 2);
    const pair = Buffer.from(encoded, "base64").toString();
    const colon = pair.indexOf(":");
    const isBasic = scheme.toLowerCase() === "basic" && colon > 0;
    if (isBasic && (await passwords.fit(pair.slice(0, colon), pair.slice(colon + 1)))) return;
    throw new RegistryFailure("UNAUTHORIZED", "authentication required", {
      headers: { "www-authenticate": 'Basic realm="registry"' },
    });
  };
}

/** Checks passwords, each right one once: a push is hundreds of requests. */
class Passwords {
  readonly #users: Htpasswd;
  /** Keyed, so that what is remembered says nothing about the password. */
  readonly #key = randomBytes(32);
  readonly #fitting = new Set<string>();
  #version = "";
  #checking = 0;

  constructor(users: Htpasswd) {
    this.#users = users;
  }

  async fit(username: string, password: string): Promise<boolean> {
    const { version } = this.#users;
    if (version !== this.#version) this.#fitting.clear();
    this.#version = version;
    const mark = createHmac("sha256", this.#key).update(`${username}\0${password}`).digest("hex");
    if (this.#fitting.has(mark)) return true;
    if (this.#checking >= checkLimit)
      throw new RegistryFailure("TOOMANYREQUESTS", "too many sign-ins at once; try later", {
        headers: { "retry-after": "1" },
      });
    this.#checking++;
    try {
      const { default: bcrypt } = await import("bcryptjs");
      // Who is not there takes as long as who is, so that names cannot be found out.
      const hash = this.#users.hashOf(username) ?? (await nobodysHash());
      // Longer ones would be cut at 72 bytes, and then fit without being equal.
      const fits = Buffer.byteLength(password) <= 72 && (await bcrypt.compare(password, hash));
      if (!fits || this.#users.hashOf(username) === undefined) return false;
    } finally {
      this.#checking--;
    }
    if (this.#fitting.size >= rememberedLimit) this.#fitting.clear();
    this.#fitting.add(mark);
    return true;
  }
}

let nobody: Promise<string> | undefined;

async function nobodysHash(): Promise<string> {
  const { default: bcrypt } = await import("bcryptjs");
  return (nobody ??= bcrypt.hash(randomBytes(16).toString("hex"), 5));
}
