/** What is in a commit in place of a file that Git LFS keeps (git-lfs, "Git LFS Specification"). */

export interface LfsPointer {
  /** sha256 of the content, in hex. */
  oid: string;
  /** Bytes. */
  size: number;
}

/** Larger files are none. */
export const maxPointerBytes = 1024;

const pointer =
  /^version https:\/\/(?:git-lfs|hawser)\.github\.com\/spec\/v1\r?\noid sha256:([0-9a-f]{64})\r?\nsize (\d{1,15})\s*$/;

/** Undefined for any other text, also one with extensions: only the program that wrote it can read such content back. */
export function parsePointer(text: string): LfsPointer | undefined {
  const [, oid, size] = pointer.exec(text) ?? [];
  return oid === undefined ? undefined : { oid, size: Number(size) };
}

/** Whether a text begins as pointers do. */
export const looksLikePointer = (text: string): boolean =>
  /^version https:\/\/(?:git-lfs|hawser)\.github\.com\/spec\//.test(text);
