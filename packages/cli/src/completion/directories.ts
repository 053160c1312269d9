import { readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

const maxEntries = 5000;

/** Directories whose paths begin so, with a `/` at the end; hidden ones only where their dot was typed. */
export function directoriesAt(typed: string): string[] {
  const above = typed.slice(0, typed.lastIndexOf("/") + 1);
  const begin = typed.slice(above.length);
  const place = above.startsWith("~/") ? path.join(homedir(), above.slice(2)) : above || ".";
  const isDirectory = (name: string): boolean =>
    statSync(path.join(place, name), { throwIfNoEntry: false })?.isDirectory() ?? false;
  return (
    readdirSync(place)
      .slice(0, maxEntries)
      .filter((name) => name.startsWith(begin) && (begin !== "" || !name.startsWith(".")))
      // What a shell reads line by line.
      .filter((name) => !/\p{Cc}/u.test(name) && isDirectory(name))
      .toSorted()
      .map((name) => `${above}${name}/`)
  );
}
