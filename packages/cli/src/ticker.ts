/** One line at the end of a terminal that names what is being waited for, and for how long. On other outputs there is none. */
import { stripVTControlCharacters, styleText } from "node:util";

/** Shorter waits need no explanation. */
const silentMs = 1000;
const intervalMs = 1000;
const clearLine = "\r\x1b[2K";

/** The part of a terminal that it needs. */
export type TickerOutput = Pick<NodeJS.WriteStream, "write"> & {
  isTTY?: boolean;
  columns?: number;
};

export class Ticker {
  readonly #output: TickerOutput;
  #text: string | undefined;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;
  #isShown = false;

  constructor(output: TickerOutput = process.stderr) {
    this.#output = output;
  }

  /** Begins to count, from zero again where the text is another one. */
  wait(text: string): void {
    if (!this.#output.isTTY || process.env["TERM"] === "dumb" || this.#text === text) return;
    this.stop();
    this.#text = text;
    this.#since = performance.now();
    this.#timer = setInterval(() => this.#draw(), intervalMs);
    this.#timer.unref();
  }

  /** Before anything else is printed: the line is drawn again below it. */
  clear(): void {
    if (!this.#isShown) return;
    this.#isShown = false;
    this.#output.write(clearLine);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#text = undefined;
    this.clear();
  }

  #draw(): void {
    const ms = performance.now() - this.#since;
    if (this.#text === undefined || ms < silentMs) return;
    const line = shortened(this.#text, ` ${elapsed(ms)}`, (this.#output.columns ?? 80) - 1);
    this.#isShown = true;
    this.#output.write(
      clearLine + styleText("dim", line, { validateStream: true, stream: process.stderr }),
    );
  }
}

/** `12 s`, `2 min 5 s`. */
export function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A line that is longer than the terminal could not be cleared. */
function shortened(text: string, end: string, columns: number): string {
  const room = columns - end.length;
  const plain = stripVTControlCharacters(text);
  return (plain.length > room ? `${plain.slice(0, Math.max(room - 1, 0))}…` : plain) + end;
}
