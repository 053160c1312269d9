import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Digest } from "../../digest.ts";
import { allows, type Grant } from "../access/grants.ts";
import { writeDurably } from "../durable-file.ts";

/**
 * What repositories were called before each namespace had its own: Pods and Deployments of then go on using those names. A former
 * name may stand for several: `a-b-c` was `a-b/c`'s and `a/b-c`'s. Kept in `<dir>/former-names.json`.
 */
export class Aliases {
  readonly #file: string;
  readonly #scratch: string;
  #names: Map<string, string[]>;

  constructor(dir: string, scratch: string) {
    this.#file = join(dir, "former-names.json");
    this.#scratch = scratch;
    this.#names = read(this.#file);
  }

  /** What a former name stands for as far as the grant covers it; any other name, for itself. */
  resolve(repository: string, grant: Grant): string {
    const now = this.#names.get(repository)?.find((each) => allows(grant, "pull", each));
    return now ?? repository;
  }

  /** The same references (`<repository>@<digest>`, `<repository>:<tag>`), and those by today's names. */
  withToday(references: readonly string[]): string[] {
    return references.flatMap((reference) => {
      const repository = repositoryOf(reference);
      const rest = reference.slice(repository.length);
      return [reference, ...(this.#names.get(repository) ?? []).map((name) => `${name}${rest}`)];
    });
  }

  async add(more: ReadonlyMap<string, string[]>): Promise<void> {
    if (more.size === 0) return;
    await this.#write(new Map([...this.#names, ...more]));
  }

  /** Forgets names that nothing uses any more. */
  async keepOnly(references: readonly string[]): Promise<void> {
    if (this.#names.size === 0) return;
    const used = new Set(references.map(repositoryOf));
    const kept = new Map([...this.#names].filter(([name]) => used.has(name)));
    if (kept.size < this.#names.size) await this.#write(kept);
  }

  async #write(names: Map<string, string[]>): Promise<void> {
    await writeDurably(this.#file, JSON.stringify(Object.fromEntries(names)), this.#scratch);
    this.#names = names;
  }
}

/** Of `<repository>@<digest>` or `<repository>:<tag>`. */
export function repositoryOf(reference: string): string {
  return reference.split(/[@:]/, 1)[0] ?? "";
}

export function digestOfReference(reference: string): Digest | undefined {
  return reference.split("@")[1] as Digest | undefined;
}

function read(file: string): Map<string, string[]> {
  try {
    return new Map(
      Object.entries(JSON.parse(readFileSync(file, "utf8")) as Record<string, string[]>),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
}
