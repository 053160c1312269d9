/** What `spry dev` prints, and the keys that it listens to. */
import { styleText } from "node:util";
import { type Failure } from "../load-failure.ts";
import { printable, printableLines } from "../printable.ts";
import { columnsOf, shortened, wrapped } from "../terminal-width.ts";
import { type FailureReport, restOf } from "./load-report.ts";
import { type AnsweredRequest, type DevOutput } from "./output.ts";

type Style = Parameters<typeof styleText>[0];

/** Styled where the output is a terminal that wants colours (`NO_COLOR`, `FORCE_COLOR`). */
const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout, validateStream: true });

/** Lines of `spry dev` itself; the Function's own output is printed as it is. */
export class DevTerminal implements DevOutput {
  begin(name: string, runtime: string): void {
    console.log(`${styled("bold", name)} ${styled("dim", `(${runtime})`)}`);
  }

  ready({ url, ms, isLoaded }: { url: string; ms: number; isLoaded: boolean }): void {
    if (isLoaded) this.#good(`ready after ${ms} ms at ${url}`);
    else this.note(`waiting for code that can be loaded, at ${url}`);
  }

  /** What becomes of it follows at once. */
  changed(): void {}

  reloaded(ms: number): void {
    this.#good(`new code answers (${ms.toFixed(0)} ms)`);
  }

  failed({ summary, wayOut }: Failure, report?: FailureReport): void {
    this.problem(summary);
    if (report) this.#printCode(restOf(summary, report));
    if (wayOut) this.#print("  ", wayOut, "dim");
    this.#print("  ", "requests are answered with this error until a file is saved", "dim");
  }

  crashed(sentence: string): void {
    this.problem(sentence);
  }

  request({ method, path, status, ms }: AnsweredRequest): void {
    const style = status >= 500 ? "red" : status >= 400 ? "yellow" : "green";
    const time = ms < 10 ? ms.toFixed(1) : ms.toFixed(0);
    const shown = printable(path.length > 48 ? `${path.slice(0, 47)}…` : path);
    console.log(
      `${styled("dim", method)} ${shown} ${styled(style, String(status))} ${styled("dim", `${time} ms`)}`,
    );
  }

  output(chunk: Buffer, stream: "stdout" | "stderr"): void {
    process[stream].write(chunk);
  }

  note(text: string): void {
    this.#print("", text, "dim");
  }

  problem(text: string): void {
    this.#print(`${styled("red", "✘")} `, text, "bold");
  }

  clear(): void {
    if (process.stdout.isTTY) process.stdout.write("\x1b[2J\x1b[3J\x1b[H");
  }

  stopped(): void {}

  /** Broken where the terminal ends. */
  #print(mark: string, text: string, style: Style): void {
    const columns = columnsOf(process.stdout);
    const lines = wrapped(printableLines(text), columns && columns - 2).split("\n");
    const indent = mark === "" ? "" : "  ";
    lines.forEach((line, index) =>
      console.log((index === 0 ? mark : indent) + styled(style, line)),
    );
  }

  /** Not broken: a mark below a line is at its place. */
  #printCode(text: string): void {
    const columns = columnsOf(process.stdout);
    const shown = printableLines(text.replaceAll("\t", "  "));
    for (const line of shown === "" ? [] : shown.split("\n"))
      console.log(`  ${shortened(line, columns && columns - 2)}`);
  }

  #good(text: string): void {
    console.log(`${styled("green", "✔")} ${text}`);
  }
}

/** Calls an action for each key on a terminal; returns what gives the terminal back. `interrupt` is for Ctrl-C. */
export function listenToKeys(actions: Record<string, () => void>): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => {};
  stdin.setRawMode(true);
  stdin.resume();
  const onData = (chunk: Buffer) => {
    for (const key of chunk.toString()) {
      const name = key === "\u0003" ? "interrupt" : key === "\u0004" ? "q" : key.toLowerCase();
      if (Object.hasOwn(actions, name)) actions[name]?.();
    }
  };
  stdin.on("data", onData);
  return () => {
    stdin.off("data", onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
