/**
 * Code that writes files into its directory is not loaded again because of them, as its process says which it writes. What native code and
 * other processes write while it is loaded is not said, and it would be loaded again for ever. What changes then may also have been
 * saved by the user: so the code is loaded again a few times, later only once nothing changes any more, and after that no more.
 */
import { realpathSync } from "node:fs";
import path from "node:path";

/** What a change is a reason for. */
export type Verdict = "reload" | "later" | "nothing";

const maxAtOnce = 3;
const maxLater = 2;
/** A file of code that was written longer ago has been saved by its user. */
const codeMs = 1000;
const maxWritten = 10_000;

export class OwnWrites {
  /** Loads in a row during which something has changed. */
  #rounds = 0;
  /** Of these, those that began when nothing had changed for a while. */
  #later = 0;
  #round = -1;
  readonly #known = new Set<string>();
  /** By path, and when the process said so, as `Date.now()`. */
  readonly #written = new Map<string, number>();
  readonly #said = new Set<string>();
  readonly #onFound: (file: string) => void;

  /** `onFound`: this file is written by the code. */
  constructor(onFound: (file: string) => void) {
    this.#onFound = onFound;
  }

  /** The code in the directory `root` is about to write these files. */
  add(files: readonly string[], root: string | undefined): void {
    if (root === undefined || files.length === 0) return;
    // A directory may be reached by links, and the process knows its real place.
    const below = [root, realPathOf(root)].map((place) => place + path.sep);
    for (const file of files) {
      const place = below.find((each) => file.startsWith(each));
      const relative = file.slice(place?.length).split(path.sep).join("/");
      if (place !== undefined && (this.#written.size < maxWritten || this.#written.has(relative)))
        this.#written.set(relative, Date.now());
    }
  }

  /** `round`: which load was under way when the file changed, at `time` (as `Date.now()`); undefined where none was. */
  judge(file: string, round: number | undefined, time = Date.now()): Verdict {
    if (this.#isWritten(file, time)) {
      this.#found(file);
      return "nothing";
    }
    if (round === undefined) {
      this.reset();
      return "reload";
    }
    if (this.#isKnown(file)) return "nothing";
    // A save of code is never taken for the code's own.
    if (this.#later >= maxLater && isCode.test(file)) return "reload";
    if (this.#later >= maxLater) {
      this.#known.add(file).add(kindOf(file));
      this.#found(file);
      return "nothing";
    }
    if (round !== this.#round) this.#rounds++;
    this.#round = round;
    return this.#rounds > maxAtOnce ? "later" : "reload";
  }

  /** A load begins for what was left for later. */
  beginLater(): void {
    this.#later++;
  }

  /** A load is over during which nothing has changed. */
  reset(): void {
    this.#rounds = 0;
    this.#later = 0;
  }

  #isWritten(file: string, time: number): boolean {
    const at = this.#written.get(file);
    return at !== undefined && (!isCode.test(file) || time - at < codeMs);
  }

  /** Said once of each kind. */
  #found(file: string): void {
    if (this.#said.has(kindOf(file))) return;
    this.#said.add(kindOf(file));
    this.#onFound(file);
  }

  /** Also one of the same kind: names may be new ones each time. */
  #isKnown(file: string): boolean {
    return !isCode.test(file) && (this.#known.has(file) || this.#known.has(kindOf(file)));
  }
}

const isCode = /\.(?:[cm]?[jt]sx?|py)$/;
const kindOf = (file: string): string => `${path.posix.dirname(file)}/*${path.posix.extname(file)}`;

function realPathOf(place: string): string {
  try {
    return realpathSync(place);
  } catch {
    // It is gone for a moment.
    return place;
  }
}
