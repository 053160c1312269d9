import { renameSync, statSync } from "node:fs";
import { type Logger } from "@spry/kube";
import { pino } from "pino";

/** A log file that has grown beyond this becomes `<file>.1` at the next start. */
const maxFileSize = 16 * 1024 * 1024;

/** JSON lines on standard output, or in a file. `SPRY_LOG_LEVEL`: debug, info (default), warn, error. */
export function createLogger(options: { name: string; file?: string }): Logger {
  const level = process.env["SPRY_LOG_LEVEL"] ?? "info";
  if (options.file) rotate(options.file);
  const destination = pino.destination({ dest: options.file ?? 1, sync: true, mode: 0o600 });
  return pino(
    { level, base: { name: options.name }, timestamp: pino.stdTimeFunctions.isoTime },
    destination,
  );
}

function rotate(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxFileSize) renameSync(file, `${file}.1`);
}
