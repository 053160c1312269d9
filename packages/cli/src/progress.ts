/**
 * Progress of commands that take a while: lines with the elapsed time for people, on standard error, or with `--json` one
 * object a line, on standard output, for programs (docs/cli-reference.md).
 */
import { messageOf } from "@spry/kube";
import { printable, printableOutput } from "./printable.ts";
import { UserError } from "./user-error.ts";

export type ProgressEvent =
  | { event: "source"; function: string; files: number; sentBytes: number }
  | { event: "applied"; object: string; namespace?: string | undefined }
  | { event: "stage"; function: string; stage: string; status: string; message: string }
  /** A line of the build's output, as it comes. */
  | { event: "output"; function: string; line: string }
  | { event: "running"; function: string; namespace: string; url?: string | undefined }
  | { event: "failed"; object?: string | undefined; message: string; wayOut?: string | undefined };

/** Shorter waits need no explanation. */
const silentMs = 1000;

export class Progress {
  readonly #isJson: boolean;
  readonly #begin = performance.now();

  constructor(isJson = false) {
    this.#isJson = isJson;
  }

  get isJson(): boolean {
    return this.#isJson;
  }

  /** `text`: the line for people, if there is one. */
  report(event: ProgressEvent, text?: string): void {
    const elapsedMs = Math.round(performance.now() - this.#begin);
    if (this.#isJson)
      console.log(JSON.stringify({ time: new Date().toISOString(), elapsedMs, ...event }));
    else if (text !== undefined) console.error(text + timeOf(elapsedMs));
  }

  /** A line of the build's, below the stage that it belongs to. */
  output(name: string, line: string): void {
    if (this.#isJson) this.report({ event: "output", function: name, line });
    else console.error(`    ${process.stderr.isTTY ? printableOutput(line) : line}`);
  }

  /** For people alone. */
  note(text: string): void {
    if (!this.#isJson) console.error(text);
  }

  /** Runs a command's work; with `--json` its failure is an event, too, and the exit code is 1. */
  async run(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#isJson) throw error;
      this.failed(error);
      process.exit(1);
    }
  }

  failed(error: unknown, object?: string): void {
    const wayOut = error instanceof UserError ? error.wayOut : undefined;
    this.report({ event: "failed", object, message: messageOf(error), wayOut });
  }
}

function timeOf(elapsedMs: number): string {
  return elapsedMs < silentMs ? "" : ` (${printable((elapsedMs / 1000).toFixed(1))} s)`;
}

/** For who shows progress in another way. */
export const silentProgress = new (class extends Progress {
  override report(): void {}
  override output(): void {}
})();
