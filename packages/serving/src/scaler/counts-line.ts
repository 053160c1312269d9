import { type CountsLine } from "@spry/function";

const numbers = ["at", "active", "waiting", "requests", "load"] as const;
const maxTextLength = 512;

/** A line as a gateway writes it; undefined for anything else. */
export function parseCountsLine(text: string): CountsLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<CountsLine> | null;
    const { gateway, revision } = line ?? {};
    const isNamed = [gateway, revision].every(
      (each) => typeof each === "string" && each !== "" && each.length <= maxTextLength,
    );
    const isCounted = numbers.every((name) => Number.isFinite(line?.[name]) && line![name]! >= 0);
    return isNamed && isCounted ? (line as CountsLine) : undefined;
  } catch {
    return undefined;
  }
}

const maxLineLength = 64 * 1024;

/** Splits what arrives into lines; an empty one only says that the connection lives. Throws for one that is too long. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #pending = "";

  push(chunk: Uint8Array): string[] {
    const lines = (this.#pending + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#pending = lines.pop() ?? "";
    if (this.#pending.length > maxLineLength) throw new Error("a line of counts is too long");
    return lines.filter((line) => line !== "");
  }
}
