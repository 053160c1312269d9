import { createHash, type Hash } from "node:crypto";

/** A content address, `sha256:` and 64 hex digits. Other algorithms are refused where they come in. */
export type Digest = `sha256:${string}`;

const digestPattern = /^sha256:[0-9a-f]{64}$/;

export function isDigest(text: string): text is Digest {
  return digestPattern.test(text);
}

/** Reads a digest that came from outside. */
export function parseDigest(text: string): Digest {
  if (isDigest(text)) return text;
  throw new Error(`reading digest ${JSON.stringify(text.slice(0, 80))}: expected sha256:<64 hex>`);
}

export function digestOf(content: string | Uint8Array): Digest {
  return digestFrom(createHash("sha256").update(content));
}

/** Ends the hash. */
export function digestFrom(hash: Hash): Digest {
  return `sha256:${hash.digest("hex")}`;
}

/** Passes chunks on, and throws at the end when they are not what was announced; never buffers. */
export async function* verifyContent(
  source: AsyncIterable<Uint8Array>,
  expected: { digest: Digest; size?: number | undefined },
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
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
  const actual = digestFrom(hash);
  if (actual !== expected.digest)
    throw new Error(`${expected.digest}: the content has digest ${actual}`);
}
