import { type Digest } from "@spry/image";
import { readJson, writeAtomically } from "./data-dir.ts";

/**
 * Which images this platform itself has put into its registry: a tag alone does not say who has set it. Earlier versions
 * gave every namespace a login that could.
 */
export class KnownImages {
  readonly #file: string;
  readonly #digests: Map<string, Digest>;

  /** `file` is this platform's alone. */
  constructor(file: string) {
    this.#file = file;
    const known = Object.entries(readJson<Record<string, Digest>>(file) ?? {});
    this.#digests = new Map(known.filter(([, digest]) => isDigest(digest)));
  }

  /** Of an image that was made here; by its name with its tag. */
  digestOf(image: string): Digest | undefined {
    return this.#digests.get(image);
  }

  add(image: string, digest: Digest): void {
    this.#digests.set(image, digest);
  }

  /** Keeps these images alone, on disk, and returns them with their digests. */
  keep(images: readonly string[]): Map<string, Digest> {
    const kept = new Map(
      images.flatMap((image) => {
        const digest = this.#digests.get(image);
        return digest === undefined ? [] : [[image, digest] as const];
      }),
    );
    writeAtomically(this.#file, JSON.stringify(Object.fromEntries(kept)), 0o600);
    return kept;
  }
}

const isDigest = (value: unknown): boolean =>
  typeof value === "string" && /^sha256:[0-9a-f]{64}$/.test(value);
