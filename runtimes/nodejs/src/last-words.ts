import { closeSync, openSync, writeSync } from "node:fs";

const maxBytes = 4096;

/** Where the container's termination message is; the node's process sandbox has it elsewhere. */
export function lastWordsFile(): string {
  return process.env["SPRY_TERMINATION_LOG"] || "/dev/termination-log";
}

/**
 * Says why the process ends, where the platform looks first. Without it that would be the end of the log, which may begin with what an
 * earlier request has written.
 */
export function leaveLastWords(text: string): void {
  try {
    // Not created: outside of a container there is none.
    const file = openSync(lastWordsFile(), "r+");
    writeSync(file, text.slice(0, maxBytes));
    closeSync(file);
  } catch {
    // The log has it, too.
  }
}
