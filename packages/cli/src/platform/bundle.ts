import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { packagedProgram } from "../programs.ts";
import { sourceDigest } from "./source-digest.ts";

/** A program bundled to one CommonJS file, which is what starts fastest; made only when it is read. */
export class Bundle {
  readonly digest: string;
  readonly #entry: string;
  readonly #file: string;
  #content: Promise<Buffer> | undefined;

  /** `sources` is the directory with all that goes into it. */
  constructor(entry: string, file: string, sources = path.dirname(path.dirname(entry))) {
    this.#entry = entry;
    this.#file = file;
    this.digest = sourceDigest(sources);
  }

  get isMade(): boolean {
    return this.#content !== undefined;
  }

  content(): Promise<Buffer> {
    return (this.#content ??= this.#build());
  }

  async #build(): Promise<Buffer> {
    const made = packagedProgram(`${path.basename(this.#file, ".cjs")}-${this.digest}.cjs`);
    if (made !== undefined && existsSync(made)) return readFile(made);
    const { build } = await import("esbuild");
    try {
      await build({
        entryPoints: [this.#entry],
        outfile: this.#file,
        bundle: true,
        platform: "node",
        target: "node22",
        format: "cjs",
        legalComments: "none",
        logLevel: "silent",
      });
      return await readFile(this.#file);
    } catch (error) {
      throw new Error(`bundling ${this.#entry}`, { cause: error });
    }
  }
}
