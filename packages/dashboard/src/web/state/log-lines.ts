/** The lines of containers' output. */
import { levelOf, type LogLevel, printable } from "./log-text.ts";

export interface LogLine {
  id: number;
  pod: string;
  /** RFC 3339 */
  time: string;
  text: string;
  level: LogLevel;
}

const maxLineLength = 16 * 1024;

let nextId = 1;

/** Cuts a stream into lines; of a very long one only the beginning is held, with a mark of how much is missing. */
export class LineReader {
  /** Without a line end yet. */
  rest = "";
  #left = 0;

  add(text: string): string[] {
    const parts = text.split("\n");
    const last = parts.pop() ?? "";
    const complete = parts.map((part) => {
      this.#append(part);
      const line = this.rest + (this.#left > 0 ? ` … ${this.#left} more characters` : "");
      this.rest = "";
      this.#left = 0;
      return line;
    });
    this.#append(last);
    return complete;
  }

  #append(text: string): void {
    const room = Math.max(maxLineLength - this.rest.length, 0);
    this.rest += text.slice(0, room);
    this.#left += Math.max(text.length - room, 0);
  }
}

/** A line that begins with its time. */
export function lineOf(pod: string, line: string): LogLine {
  const space = line.indexOf(" ");
  const text = printable(line.slice(space + 1));
  return { id: nextId++, pod, time: line.slice(0, Math.max(space, 0)), text, level: levelOf(text) };
}
