/** What `spry dev` prints. */
import { styleText } from "node:util";
import { type Failure } from "../load-failure.ts";
import { printable, printableLines } from "../printable.ts";
import { columnsOf, shortened, wrapped } from "../terminal-width.ts";
import { type FailureReport, restOf } from "./load-report.ts";
import { type AnsweredRequest, type DevOutput, type Listed } from "./output.ts";

type Style = Parameters<typeof styleText>[0];

/** Styled where the output is a terminal that wants colours (`NO_COLOR`, `FORCE_COLOR`). */
const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout, validateStream: true });

/** Of the names of several Functions. */
const labelStyles = ["cyan", "yellow", "magenta", "green", "blue"] as const;
const maxLabel = 16;
const maxLineLength = 64 * 1024;

/** How a Function is named before its lines. */
export const labelOf = (name: string): string => shortened(name, maxLabel);

/** Before each line of one of several Functions. */
interface Label {
  text: string;
  width: number;
}

/** Lines of `spry dev` itself; the Function's own output is printed as it is, or where several run a line at a time. */
export class DevTerminal implements DevOutput {
  readonly #label: Label | undefined;
  readonly #open = { stdout: "", stderr: "" };
  /** A file has been saved, and the code is not loaded yet. */
  #isChanging = false;

  constructor(label?: Label) {
    this.#label = label;
  }

  of(name: string, names: readonly string[]): DevTerminal {
    const width = Math.min(maxLabel, Math.max(...names.map(({ length }) => length)));
    const style = labelStyles[names.indexOf(name) % labelStyles.length] ?? "cyan";
    const text = styled(style, `${labelOf(name).padEnd(width)} │`);
    return new DevTerminal({ text: `${text} `, width: width + 3 });
  }

  begin(name: string, runtime: string): void {
    if (this.#label && runtime) this.note(`runs on ${runtime}`);
    else if (!this.#label) console.log(`${styled("bold", name)} ${styled("dim", `(${runtime})`)}`);
  }

  ready({ url, ms, isLoaded }: { url: string; ms: number; isLoaded: boolean }): void {
    // Of several the list at the end says it.
    if (this.#label) return;
    if (isLoaded) this.#good(`ready after ${ms} ms at ${url}`);
    else this.note(`waiting for code that can be loaded, at ${url}`);
  }

  allReady(functions: readonly Listed[], ms: number): void {
    this.#good(`ready after ${ms} ms`);
    const width = Math.max(...functions.map(({ name }) => name.length));
    functions.forEach(({ name, url, isLoaded }, index) => {
      const state = isLoaded ? "" : `  ${styled("red", "✘ not loaded")}`;
      this.#write(`  ${String(index + 1).padStart(2)}  ${name.padEnd(width)}  ${url}${state}`);
    });
  }

  /** What becomes of it follows. Only the first of several files is named. */
  changed(file: string): void {
    if (!this.#isChanging) this.note(`changed: ${file}`);
    this.#isChanging = true;
  }

  reloaded(ms: number): void {
    this.#isChanging = false;
    this.#good(`new code answers (${ms.toFixed(0)} ms)`);
  }

  failed({ summary, wayOut }: Failure, report?: FailureReport): void {
    this.#isChanging = false;
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
    const shown = printable(shortened(path, 48 - (this.#label?.width ?? 0)));
    this.#write(
      `${styled("dim", method)} ${shown} ${styled(style, String(status))} ${styled("dim", `${time} ms`)}`,
    );
  }

  output(chunk: Buffer, stream: "stdout" | "stderr"): void {
    if (!this.#label) return void process[stream].write(chunk);
    const lines = (this.#open[stream] + chunk.toString()).split("\n");
    this.#open[stream] = (lines.pop() ?? "").slice(-maxLineLength);
    for (const line of lines) process[stream].write(`${this.#label.text}${line}\n`);
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

  /** Of the terminal, less the label. */
  #columns(): number | undefined {
    const columns = columnsOf(process.stdout);
    return columns && Math.max(columns - (this.#label?.width ?? 0), 20);
  }

  /** Broken where the terminal ends. */
  #print(mark: string, text: string, style: Style): void {
    const columns = this.#columns();
    const lines = wrapped(printableLines(text), columns && columns - 2).split("\n");
    const indent = mark === "" ? "" : "  ";
    lines.forEach((line, index) =>
      this.#write((index === 0 ? mark : indent) + styled(style, line)),
    );
  }

  /** Not broken: a mark below a line is at its place. */
  #printCode(text: string): void {
    const columns = this.#columns();
    const shown = printableLines(text.replaceAll("\t", "  "));
    for (const line of shown === "" ? [] : shown.split("\n"))
      this.#write(`  ${shortened(line, columns && columns - 2)}`);
  }

  #good(text: string): void {
    this.#write(`${styled("green", "✔")} ${text}`);
  }

  #write(line: string): void {
    console.log((this.#label?.text ?? "") + line);
  }
}
