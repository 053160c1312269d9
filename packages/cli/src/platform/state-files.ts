/** Small files of the data directory. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** The content, for the caller to look at before it trusts it; undefined if there is none. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- says at the call what is expected
export function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

/** A reader of the file sees the old content or the new one, never half of it. */
export function writeAtomically(file: string, content: string, mode = 0o644): void {
  // What is in its place, a link above all, is nothing that a write may follow.
  rmSync(`${file}.new`, { recursive: true, force: true });
  writeFileSync(`${file}.new`, content, { mode, flag: "wx" });
  renameSync(`${file}.new`, file);
}
