import { type Readable, type Writable } from "node:stream";

export interface ExecCommand {
  argv: readonly string[];
  /** Without it the command reads an empty input. */
  stdin: boolean;
  /** Output and errors are one stream then. */
  tty: boolean;
}

/** A command alongside a container's process, whose streams its caller holds. */
export interface ExecProcess {
  readonly stdin?: Writable | undefined;
  readonly stdout: Readable;
  readonly stderr?: Readable | undefined;
  /** Rejects when the command could not be started. */
  readonly exited: Promise<{ exitCode: number }>;
  resize(size: { columns: number; rows: number }): void;
  /** Ends the command and whatever it has started. */
  kill(): void;
}
