import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { type Writable } from "node:stream";

/**
 * What a Pod says of a container's `stdin`: `once` closes it when the first to write to it leaves. A
 * terminal's input does not end by being closed: its end is a character.
 */
export type InputMode = "open" | "once" | "terminal" | "terminal-once";

/** ^D, which ends the input of a program that reads a terminal by lines (termios(3), VEOF). */
const endOfTransmission = "\u0004";

/**
 * A container's standard input that clients can attach to: a FIFO whose writing end is held open, so that the program
 * reads no end while no client is attached. It ends with the agent.
 */
export class ContainerInput {
  readonly #file: string;
  readonly #mode: InputMode;
  #held: number | undefined;

  /** Makes the FIFO. The descriptor is the program's; to be closed when it has been handed over. */
  static create(file: string, mode: InputMode): { input: ContainerInput; descriptor: number } {
    rmSync(file, { force: true });
    execFileSync("mkfifo", ["-m", "600", file], { stdio: "ignore" });
    // Opening one direction alone would wait for the other.
    const both = openSync(file, constants.O_RDWR);
    try {
      const isTerminal = mode.startsWith("terminal");
      // Open for writing too, it never ends, even when every client leaves.
      const descriptor = openSync(file, isTerminal ? constants.O_RDWR : constants.O_RDONLY);
      const held = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
      return { input: new ContainerInput(file, mode, held), descriptor };
    } finally {
      closeSync(both);
    }
  }

  private constructor(file: string, mode: InputMode, held: number) {
    this.#file = file;
    this.#mode = mode;
    this.#held = held;
  }

  /** For one who attaches; undefined when the input has ended. */
  open(): Writable | undefined {
    if (this.#held === undefined) return undefined;
    const fd = openSync(this.#file, constants.O_WRONLY | constants.O_NONBLOCK);
    const writer = new Socket({ fd, readable: false, writable: true });
    writer.on("error", () => {});
    if (this.#mode.endsWith("once")) writer.once("close", () => this.close());
    return writer;
  }

  /** The program reads the end of its input when all attached clients have left, too. */
  close(): void {
    if (this.#held === undefined) return;
    if (this.#mode === "terminal-once") this.#end(this.#held);
    closeSync(this.#held);
    this.#held = undefined;
  }

  #end(descriptor: number): void {
    try {
      writeSync(descriptor, endOfTransmission);
    } catch {
      // No process reads it any more, or it is full.
    }
  }
}
