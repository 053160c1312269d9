/**
 * Code that writes files into its directory while it is loaded would be loaded again for ever. What changes then may also have been
 * saved by the user: so the code is loaded again a few times, later only once nothing changes any more, and after that no more.
 */
import path from "node:path";

/** What a change is a reason for. */
export type Verdict = "reload" | "later" | "nothing";

const maxAtOnce = 3;
const maxLater = 2;

export class OwnWrites {
  /** Loads in a row during which something has changed. */
  #rounds = 0;
  /** Of these, those that began when nothing had changed for a while. */
  #later = 0;
  #round = -1;
  readonly #known = new Set<string>();
  readonly #onFound: (file: string) => void;

  /** `onFound`: this file is written by the code. */
  constructor(onFound: (file: string) => void) {
    this.#onFound = onFound;
  }

  /** `round`: which load is under way; undefined where none is. */
  judge(file: string, round: number | undefined): Verdict {
    if (round === undefined) {
      this.reset();
      return "reload";
    }
    if (this.#isKnown(file)) return "nothing";
    // A save of code is never taken for the code's own.
    if (this.#later >= maxLater && isCode.test(file)) return "reload";
    if (this.#later >= maxLater) {
      this.#known.add(file).add(kindOf(file));
      this.#onFound(file);
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

  /** Also one of the same kind: names may be new ones each time. */
  #isKnown(file: string): boolean {
    return !isCode.test(file) && (this.#known.has(file) || this.#known.has(kindOf(file)));
  }
}

const isCode = /\.(?:[cm]?[jt]sx?|py)$/;
const kindOf = (file: string): string => `${path.posix.dirname(file)}/*${path.posix.extname(file)}`;
