import { createHash, type Hash } from "node:crypto";

/**
 * A content address of one of the registered algorithms (OCI image-spec, "Digests"): `sha256:` and 64 hex
 * digits, which is what Spry makes, or `sha512:` and 128. Others are refused where they come in.
 */
export type Digest = `${Algorithm}:${string}`;
export type Algorithm = "sha256" | "sha512";

const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

export function isDigest(text: string): text is Digest {
  return digestPattern.test(text);
}

/** Reads a digest that came from outside. */
export function parseDigest(text: string): Digest {
  if (isDigest(text)) return text;
  throw new Error(
    `reading digest ${JSON.stringify(text.slice(0, 80))}: expected sha256:<64 hex> or sha512:<128 hex>`,
  );
}

export function digestOf(content: string | Uint8Array, algorithm: Algorithm = "sha256"): Digest {
  return digestFrom(createHash(algorithm).update(content), algorithm);
}

/** Ends the hash, which must be of that algorithm. */
export function digestFrom(hash: Hash, algorithm: Algorithm = "sha256"): Digest {
  return `${algorithm}:${hash.digest("hex")}`;
}

export function algorithmOf(digest: Digest): Algorithm {
  return digest.startsWith("sha512:") ? "sha512" : "sha256";
}

export function hexOf(digest: Digest): string {
  return digest.slice("sha256:".length);
}

/** The digest that has these hex digits: their number shows the algorithm. */
export function digestOfHex(hex: string): Digest | undefined {
  const digest = `${hex.length === 128 ? "sha512" : "sha256"}:${hex}`;
  return isDigest(digest) ? digest : undefined;
}

/** Passes chunks on, and throws at the end when they are not what was announced; never buffers. */
export async function* verifyContent(
  source: AsyncIterable<Uint8Array>,
  expected: { digest: Digest; size?: number | undefined },
): AsyncGenerator<Uint8Array> {
  const algorithm = algorithmOf(expected.digest);
  const hash = createHash(algorithm);
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (expected.size !== undefined && size > expected.size)
      throw new Error(`${expected.digest}: more than the announced ${expected.size} bytes`);
    hash.update(chunk);
    yield chunk;
  }
  if (expected.size !== undefined && size !== expected.size)
    throw new Error(`${expected.digest}: ${size} bytes instead of ${expected.size}`);
  const actual = digestFrom(hash, algorithm);
  if (actual !== expected.digest)
    throw new Error(`${expected.digest}: the content has digest ${actual}`);
}
