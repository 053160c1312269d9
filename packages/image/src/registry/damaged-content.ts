import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { algorithmOf, type Digest, digestOfHex, hexOf } from "../digest.ts";

/**
 * Reads all content of a registry's directory and yields files that do not match their digests. Changes nothing, so
 * it may run while a registry does; `onChecked` is called for each file.
 */
export async function* damagedContent(
  dir: string,
  onChecked: () => void = () => {},
): AsyncGenerator<{ digest: Digest; file: string }> {
  const blobs = join(dir, "blobs");
  if (!existsSync(blobs)) return;
  const files = readdirSync(blobs, { recursive: true, withFileTypes: true });
  for (const entry of files) {
    const digest = entry.isFile() ? digestOfHex(entry.name) : undefined;
    if (!digest) continue;
    const file = join(entry.parentPath, entry.name);
    const hash = createHash(algorithmOf(digest));
    try {
      for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
    } catch (error) {
      // A cleaning may remove it meanwhile.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") continue;
      throw error;
    }
    onChecked();
    if (hash.digest("hex") !== hexOf(digest)) yield { digest, file };
  }
}
