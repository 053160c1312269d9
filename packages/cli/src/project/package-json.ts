/** The `package.json` of a directory. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { withoutByteOrderMark } from "../text-file.ts";
import { UserError } from "../user-error.ts";
import { shownPath } from "./shown-path.ts";

/** Empty without the file. Throws a UserError that names the file for one that npm refuses, too. */
export function readPackageJson(root: string): Record<string, unknown> {
  const file = path.join(root, "package.json");
  if (!existsSync(file)) return {};
  let value: unknown;
  try {
    value = JSON.parse(withoutByteOrderMark(readFileSync(file, "utf8")));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UserError(
      `${shownPath(file)} is not valid JSON: ${error.message}`,
      "correct it; a comma too many and a missing quotation mark are the usual causes",
    );
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new UserError(`${shownPath(file)} must be an object`, 'write {} or { "type": "module" }');
}
