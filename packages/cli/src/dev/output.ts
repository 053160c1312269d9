/** What `spry dev` reports: to users (`terminal.ts`) or, with `--json`, to programs. */
import { type Failure } from "../load-failure.ts";
import { type FailureReport } from "./load-report.ts";
import { UserError } from "../user-error.ts";

/** A request that has been answered. */
export interface AnsweredRequest {
  method: string;
  path: string;
  status: number;
  ms: number;
}

/** One of several Functions that run. */
export interface Listed {
  name: string;
  url: string;
  isLoaded: boolean;
}

export interface DevOutput {
  /** For one of several Functions, which are all in `names`. */
  of(name: string, names: readonly string[]): DevOutput;
  begin(name: string, runtime: string): void;
  /** It listens. `isLoaded`: false while the code cannot be loaded. */
  ready(found: { url: string; ms: number; isLoaded: boolean }): void;
  /** All of several listen. */
  allReady(functions: readonly Listed[], ms: number): void;
  /** A file has been saved; its path in the directory. */
  changed(file: string): void;
  /** New code answers. */
  reloaded(ms: number): void;
  /** `report`: what a process wrote about it, which is not part of `output`. */
  failed(failure: Failure, report?: FailureReport): void;
  crashed(sentence: string): void;
  request(line: AnsweredRequest): void;
  /** Of the Function's process, as it comes. */
  output(chunk: Buffer, stream: "stdout" | "stderr"): void;
  note(text: string): void;
  problem(text: string): void;
  clear(): void;
  stopped(): void;
}

const maxLineLength = 64 * 1024;

/** One object a line on standard output; docs/local-development.md describes them. */
export class DevEvents implements DevOutput {
  /** Of one of several Functions: each object names it. */
  readonly #name: string | undefined;
  #about = {};
  readonly #open = { stdout: "", stderr: "" };

  constructor(name?: string) {
    this.#name = name;
  }

  of(name: string): DevEvents {
    return new DevEvents(name);
  }

  begin(name: string, runtime: string): void {
    this.#about = { function: name, runtime };
  }

  ready({ url, ms, isLoaded }: { url: string; ms: number; isLoaded: boolean }): void {
    this.#write("ready", { ...this.#about, url, ms, loaded: isLoaded });
  }

  /** Each has said so itself. */
  allReady(): void {}

  changed(file: string): void {
    this.#write("change", { file });
  }

  reloaded(ms: number): void {
    this.#write("reload", { ok: true, ms: rounded(ms) });
  }

  failed({ summary, details, wayOut }: Failure, report?: FailureReport): void {
    if (report) this.output(report.raw, "stderr");
    const [, file, line, message = summary] =
      /^([^\s:]+):(\d+)(?::\d+)?: ([^]*)$/.exec(summary) ?? [];
    const place = file === undefined ? {} : { file, line: Number(line) };
    this.#write("reload", { ok: false, ...place, message, details, wayOut });
  }

  crashed(sentence: string): void {
    this.#write("crash", { message: sentence });
  }

  request({ ms, ...rest }: AnsweredRequest): void {
    this.#write("request", { ...rest, ms: rounded(ms) });
  }

  output(chunk: Buffer, stream: "stdout" | "stderr"): void {
    const lines = (this.#open[stream] + chunk.toString()).split("\n");
    this.#open[stream] = (lines.pop() ?? "").slice(-maxLineLength);
    for (const line of lines) this.#write("output", { stream, line });
  }

  note(text: string): void {
    this.#write("note", { message: text });
  }

  problem(text: string): void {
    this.note(text);
  }

  clear(): void {}

  stopped(): void {
    this.#write("stop", {});
  }

  /** What ends the command. */
  ended(error: unknown): void {
    const wayOut = error instanceof UserError ? error.wayOut : undefined;
    this.#write("failed", {
      message: error instanceof Error ? error.message : String(error),
      wayOut,
    });
  }

  #write(event: string, fields: object): void {
    const about = this.#name === undefined ? {} : { function: this.#name };
    console.log(JSON.stringify({ time: new Date().toISOString(), event, ...about, ...fields }));
  }
}

const rounded = (ms: number): number => Math.round(ms * 10) / 10;
