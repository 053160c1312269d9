/** Where `spry dev` keeps what it need not make twice. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** `$XDG_CACHE_HOME/spry` or `~/.cache/spry`. Safe to delete. */
export function cacheDir(): string {
  const base = process.env["XDG_CACHE_HOME"];
  return path.join(base && path.isAbsolute(base) ? base : path.join(homedir(), ".cache"), "spry");
}

/** A file of the user's home, if it exists. */
export function fileAtHome(name: string): string | undefined {
  const file = path.join(homedir(), name);
  return existsSync(file) ? file : undefined;
}
