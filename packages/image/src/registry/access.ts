import { createHash, timingSafeEqual } from "node:crypto";
import { type IncomingMessage } from "node:http";
import { RegistryFailure } from "./registry-failure.ts";

/** Throws when a request does not carry the credentials; without credentials everybody may come in. */
export function accessCheck(
  credentials: { username: string; password: string } | undefined,
): (request: IncomingMessage) => void {
  if (!credentials) return () => {};
  const expected = hashOf(`${credentials.username}:${credentials.password}`);
  return ({ headers: { authorization = "" } }) => {
    const [scheme = "", encoded = ""] = authorization.split(" ", 2);
    const given = hashOf(Buffer.from(encoded, "base64").toString());
    // Hashes are of equal length, so that neither length nor content shows in the time it takes.
    if (timingSafeEqual(given, expected) && scheme.toLowerCase() === "basic") return;
    throw new RegistryFailure("UNAUTHORIZED", "authentication required", {
      headers: { "www-authenticate": 'Basic realm="registry"' },
    });
  };
}

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
