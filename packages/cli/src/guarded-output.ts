/** Standard output that cannot be written: a pipe whose reader has ended, or a disk that is full. */
import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";
import { printError } from "./print-error.ts";

/**
 * Ends this process then, instead of throwing where it cannot be caught: silently for a pipe, with the exit code of a program that the
 * system has ended for that (`spry get | head -1`). `outlivesReader`: continue without a reader.
 */
export function guardOutput(outlivesReader: boolean): void {
  process.stdout.on("error", ({ code, errno = 0 }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") {
      if (!outlivesReader) process.exit(128 + constants.signals.SIGPIPE);
      return;
    }
    const [, words = code] = getSystemErrorMap().get(errno) ?? [];
    printError(`standard output cannot be written: ${words}`);
    process.exit(1);
  });
  process.stderr.on("error", () => {});
}
