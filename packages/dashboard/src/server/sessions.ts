import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { loginTokenPrefix } from "./access.ts";

/** What a browser gets in exchange for a code, and stores. */
export interface Login {
  token: string;
  /** Milliseconds since 1970. */
  expires: number;
}

/** It is in a terminal's output, and perhaps in a log. */
const codeLifeMs = 10 * 60_000;
const loginLifeMs = 12 * 3600 * 1000;
/** How old a proof may be. Both processes run on this machine, with the same clock. */
const proofLifeMs = 30_000;
const maxCodes = 100;

/**
 * Logins on one machine. A code is in the fragment of a link, works once, and is known only to this process. A login is a
 * signed string that contains its expiry: it survives a restart of the platform, and nothing has to be stored.
 */
export class Sessions {
  readonly #key: Buffer;
  readonly #now: () => number;
  /** When each expires. */
  readonly #codes = new Map<string, number>();

  constructor(key: Buffer, now: () => number = Date.now) {
    this.#key = key;
    this.#now = now;
  }

  /** A code for one login. When too many are unused, the oldest becomes invalid. */
  issueCode(): string {
    const code = randomBytes(24).toString("base64url");
    for (const [oldest] of this.#codes) {
      if (this.#codes.size < maxCodes) break;
      this.#codes.delete(oldest);
    }
    this.#codes.set(code, this.#now() + codeLifeMs);
    return code;
  }

  /** Undefined when the code is unknown, used or expired. */
  redeem(code: string): Login | undefined {
    const until = this.#codes.get(code) ?? 0;
    this.#codes.delete(code);
    return until > this.#now() ? this.#issueLogin() : undefined;
  }

  /** Extends a login that is still valid. */
  renew(token: string): Login | undefined {
    return this.isValid(token) ? this.#issueLogin() : undefined;
  }

  isValid(token: string): boolean {
    return this.endOf(token) !== undefined;
  }

  /** When a login expires (ms since 1970); undefined when the token is not a login, or has expired. */
  endOf(token: string): number | undefined {
    const [, content = "", signature = ""] =
      /^spry-login\.(\d{1,16}\.[\w-]{16})\.([\w-]{43})$/.exec(token) ?? [];
    if (!isEqual(signature, sign(this.#key, `login ${content}`))) return undefined;
    const expires = Number(content.split(".")[0]);
    return expires > this.#now() ? expires : undefined;
  }

  /** Whether the caller has the key of this server, and made the proof just now: `<milliseconds since 1970>.<signature>` (codeProof). */
  isProof(proof: string): boolean {
    const [, time = "", signature = ""] = /^(\d{1,16})\.([\w-]{43})$/.exec(proof) ?? [];
    if (!isEqual(signature, sign(this.#key, `code ${time}`))) return false;
    return Math.abs(this.#now() - Number(time)) <= proofLifeMs;
  }

  #issueLogin(): Login {
    const expires = this.#now() + loginLifeMs;
    const content = `${expires}.${randomBytes(12).toString("base64url")}`;
    const token = `${loginTokenPrefix}${content}.${sign(this.#key, `login ${content}`)}`;
    return { token, expires };
  }
}

/** The proof with which a process that can read the key requests a code (`POST /login/code`). The key itself is not sent. */
export function codeProof(key: Buffer, now = Date.now()): string {
  return `${now}.${sign(key, `code ${now}`)}`;
}

function sign(key: Buffer, text: string): string {
  return createHmac("sha256", key).update(text).digest("base64url");
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
