/** The runtimes of a `spry dev`, which several Functions share. */
import { type Runtime } from "@spry/function";
import { UserError } from "../user-error.ts";
import { type RuntimeProgram, runtimeProgram } from "./runtime-program.ts";

/** What this machine lacks is not a mistake of ours. */
function explained(error: unknown): never {
  const isMissing = error instanceof Error && error.name === "MissingInterpreterError";
  throw isMissing ? new UserError(error.message) : error;
}

/** Makes each ready once, and one after the other: what they are made with ends when one is done. */
export class Programs {
  readonly #report: (line: string) => void;
  readonly #known = new Map<string, Promise<RuntimeProgram>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(report: (line: string) => void) {
    this.#report = report;
  }

  /** `scratch`: a directory that is there until all Functions have ended. */
  of(runtime: Runtime, scratch: string): Promise<RuntimeProgram> {
    const found =
      this.#known.get(runtime.name) ??
      this.#last.then(() => runtimeProgram(runtime, scratch, this.#report)).catch(explained);
    this.#known.set(runtime.name, found);
    // One that failed is tried again.
    found.catch(() => this.#known.delete(runtime.name));
    this.#last = found.catch(() => {});
    return found;
  }
}
