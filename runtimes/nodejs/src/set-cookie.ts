/** Express' options of `response.cookie`; `maxAge` is in milliseconds. */
export interface CookieOptions {
  domain?: string | undefined;
  path?: string | undefined;
  expires?: Date | undefined;
  maxAge?: number | undefined;
  httpOnly?: boolean | undefined;
  secure?: boolean | undefined;
  sameSite?: boolean | "lax" | "strict" | "none" | undefined;
  partitioned?: boolean | undefined;
  priority?: "low" | "medium" | "high" | undefined;
  signed?: boolean | undefined;
  encode?: ((value: string) => string) | undefined;
}

/** A `Set-Cookie` value by RFC 6265. */
export function formatCookie(name: string, value: string, options: CookieOptions): string {
  if (!/^[\w!#$%&'*+\-.^`|~]+$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} is not a valid cookie name`);
  const parts = [`${name}=${(options.encode ?? encodeURIComponent)(value)}`];
  const { maxAge, sameSite } = options;
  const expires = maxAge === undefined ? options.expires : new Date(Date.now() + maxAge);
  if (maxAge !== undefined) parts.push(`Max-Age=${Math.floor(maxAge / 1000)}`);
  if (options.domain) parts.push(`Domain=${options.domain}`);
  if (options.path) parts.push(`Path=${options.path}`);
  if (expires) parts.push(`Expires=${expires.toUTCString()}`);
  if (options.httpOnly) parts.push("HttpOnly");
  if (options.secure) parts.push("Secure");
  if (options.priority) parts.push(`Priority=${capitalised(options.priority)}`);
  if (options.partitioned) parts.push("Partitioned");
  if (sameSite) parts.push(`SameSite=${sameSite === true ? "Strict" : capitalised(sameSite)}`);
  return parts.join("; ");
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
}
