/**
 * Progress of commands that take a while: lines with the elapsed time for people, on standard error, or with `--json` one
 * object a line, on standard output, for programs (docs/cli-reference.md).
 */
import { messageOf } from "@spry/kube";
import { endOnInterrupt } from "./interruption.ts";
import { printable, printableOutput } from "./printable.ts";
import { withShownCommands } from "./shown-command.ts";
import { columnsOf, withShortDigests, wrapped } from "./terminal-width.ts";
import { Ticker } from "./ticker.ts";
import { UserError } from "./user-error.ts";

export type ProgressEvent =
  | { event: "source"; function: string; files: number; sentBytes: number }
  | { event: "applied"; object: string; namespace?: string | undefined }
  | { event: "stage"; function: string; stage: string; status: string; message: string }
  /** A line of the build's output, as it comes. */
  | { event: "output"; function: string; line: string }
  | { event: "running"; function: string; namespace: string; url?: string | undefined }
  | { event: "interrupted"; message: string }
  | { event: "failed"; object?: string | undefined; message: string; wayOut?: string | undefined };

/** Shorter waits need no explanation. */
const silentMs = 1000;

export class Progress {
  readonly #isJson: boolean;
  readonly #begin = performance.now();
  readonly #ticker = new Ticker();
  readonly #waiting = new Map<string, string>();
  #afterInterrupt = "nothing was changed";

  constructor(isJson = false) {
    this.#isJson = isJson;
  }

  /** What is being waited for, on a terminal with a running clock, until `done`. `who`: one of several that wait at a time. */
  waitFor(who: string, text: string): void {
    this.#waiting.delete(who);
    this.#waiting.set(who, text);
    this.#showWaiting();
  }

  done(who: string): void {
    this.#waiting.delete(who);
    this.#showWaiting();
  }

  #showWaiting(): void {
    const newest = [...this.#waiting.values()].at(-1);
    if (newest === undefined) this.#ticker.stop();
    else if (!this.#isJson) this.#ticker.wait(newest);
  }

  /** What a user reads who ends the command now. */
  whenInterrupted(sentence: string): void {
    this.#afterInterrupt = sentence;
  }

  get isJson(): boolean {
    return this.#isJson;
  }

  /** `text`: the line for people, if there is one. */
  report(event: ProgressEvent, text?: string): void {
    const elapsedMs = Math.round(performance.now() - this.#begin);
    if (this.#isJson)
      console.log(JSON.stringify({ time: new Date().toISOString(), elapsedMs, ...event }));
    else if (text !== undefined) this.#print(text + timeOf(elapsedMs));
  }

  #print(text: string): void {
    this.#ticker.clear();
    console.error(text);
  }

  /** A line of the build's, below the stage that it belongs to. */
  output(name: string, line: string): void {
    if (this.#isJson) this.report({ event: "output", function: name, line });
    else if (process.stderr.isTTY) this.#print(`    ${withShortDigests(printableOutput(line))}`);
    else this.#print(`    ${line}`);
  }

  /** For people alone. */
  note(text: string): void {
    if (!this.#isJson) this.#print(withShownCommands(text));
  }

  /**
   * Runs a command's work; with `--json` its failure is an event, too, and the exit code is 1. Ctrl-C ends the command with what
   * `whenInterrupted` was given last.
   */
  async run(work: () => Promise<void>): Promise<void> {
    const restore = endOnInterrupt(() => this.#interrupted());
    try {
      await work();
    } catch (error) {
      if (!this.#isJson) throw error;
      this.failed(error);
      process.exit(1);
    } finally {
      restore();
      this.#ticker.stop();
    }
  }

  #interrupted(): void {
    this.#ticker.stop();
    const message = withShownCommands(`interrupted: ${this.#afterInterrupt}`);
    const columns = columnsOf(process.stderr);
    // The elapsed time follows on the same line.
    const line = wrapped(
      message,
      columns && columns - " (9999.9 s)".length,
      "interrupted: ".length,
    );
    this.report({ event: "interrupted", message }, `${process.stderr.isTTY ? "\n" : ""}${line}`);
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
  override note(): void {}
  override waitFor(): void {}
})();
