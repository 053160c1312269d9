/** Text files of the user. */
import { readFileSync, statSync } from "node:fs";
import { UserError } from "./user-error.ts";

const maxTextBytes = 1024 * 1024;

/** What an editor may put before the text; it does not belong to it. */
export const withoutByteOrderMark = (text: string): string => text.replace(/^\uFEFF/, "");

/**
 * A file's text, without a byte order mark. Throws a UserError that names it, as `shown`, where it is not a file, cannot be read,
 * has more than `maxBytes` bytes or is not UTF-8: characters that are replaced would change a value.
 */
export function readText(file: string, shown = file, maxBytes = maxTextBytes): string {
  return decodeText(readBytes(file, shown, maxBytes), shown);
}

function readBytes(file: string, shown: string, maxBytes: number): Buffer {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (!found) throw new UserError(`the file ${shown} does not exist`);
    if (found.isDirectory()) throw new UserError(`${shown} is a directory, not a file`);
    if (found.size > maxBytes)
      throw new UserError(`${shown} is larger than ${maxBytes / 1024 / 1024} MiB`);
    return readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    throw new UserError(`${shown} cannot be read`, `check who may read it: ls -l ${shown}`);
  }
}

/** See `readText`. */
export function decodeText(bytes: Buffer, shown: string): string {
  const [first, second] = bytes;
  // What the `>` of Windows PowerShell writes.
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  try {
    if (!isUtf16) return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // The sentence below says it.
  }
  throw new UserError(`${shown} is ${isUtf16 ? "UTF-16" : "not UTF-8 text"}`, "save it as UTF-8");
}
