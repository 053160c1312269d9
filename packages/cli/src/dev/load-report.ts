/** How a runtime reports that code cannot be loaded, which `spry dev` shows in a form of its own, once. */

/** The first line of the report (docs/runtime-contract.md 1.4); the process ends after it. */
const begin = /^loading (?:\S+\.\w+|the Function): /m;

/** It says, too, that the code is for another platform, which the error alone does not. */
const isForeign = /; .*\b(?:do(?:es)? not exist here|not part of this runtime)\b/;

/** As the runtime wrote it, and with paths relative to the directory. */
export interface FailureReport {
  raw: Buffer;
  details: string;
}

/** Keeps that report out of a process's output until it is known whether loading has failed. */
export class LoadReport {
  #held: Buffer[] = [];
  #isHolding = false;
  #isOver = false;
  readonly #pass: (chunk: Buffer, stream: "stdout" | "stderr") => void;

  constructor(pass: (chunk: Buffer, stream: "stdout" | "stderr") => void) {
    this.#pass = pass;
  }

  write(chunk: Buffer, stream: "stdout" | "stderr"): void {
    if (this.#isOver || stream === "stdout") return this.#pass(chunk, stream);
    const at = this.#isHolding ? 0 : chunk.toString("latin1").search(begin);
    if (at < 0) return this.#pass(chunk, stream);
    if (at > 0) this.#pass(chunk.subarray(0, at), stream);
    this.#isHolding = true;
    this.#held.push(chunk.subarray(at));
  }

  /** The code is loaded: what looked like a report is output as any other. */
  release(): void {
    this.#isOver = true;
    for (const chunk of this.#held.splice(0)) this.#pass(chunk, "stderr");
  }

  /** The report, as the runtime wrote it. */
  take(): Buffer {
    this.#isOver = true;
    return Buffer.concat(this.#held.splice(0));
  }
}

/** What a report says besides place and message, which the summary has: the line of code with its mark, and the stack. */
export function restOf(summary: string, { details }: { details: string }): string {
  const [, place, message = summary] = /^([^\s:]+:\d+)(?::\d+)?: ([^]*)$/.exec(summary) ?? [];
  const isSaid = (line: string): boolean => {
    const text = line.trim().replaceAll(/^\[|\]$/g, "");
    return (
      text === "" ||
      text === place ||
      text.replace(/ \[ERR_\w+\]/, "").replace(/ \{$/, "") === message ||
      `File "${place?.replace(/:(\d+)$/, '", line $1')}` === text ||
      (begin.test(line) && !isForeign.test(line))
    );
  };
  return details
    .split("\n")
    .filter((line) => !isSaid(line))
    .join("\n");
}
