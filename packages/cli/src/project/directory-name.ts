/** The name of a Function whose directory's settings do not give it one. */
import path from "node:path";
import { UserError } from "../user-error.ts";
import { configName } from "./schema.ts";

const maxLength = 63;

/** Lower-casing and separators lose nothing. */
const plain = (directory: string): string =>
  originalName(directory)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, "-")
    .replaceAll(/^-|-$/g, "");

/** As it is called; the same on a file system that takes letters and their marks apart. */
export const originalName = (directory: string): string =>
  path.basename(path.resolve(directory)).normalize("NFC");

/** A directory's name as that of a Function (RFC 1035 label), with what that has. Names of several directories may become one. */
export function nameFrom(directory: string): string {
  const name = plain(directory)
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, maxLength)
    .replace(/-+$/, "");
  return name || "function";
}

/** What is wrong with such a name: a UserError where letters or digits of the directory's name would be lost. */
export function nameProblem(directory: string): UserError | undefined {
  if (plain(directory) === nameFrom(directory)) return undefined;
  return new UserError(
    `the directory's name ${originalName(directory)} cannot be that of a Function, which has up to ${maxLength} letters from a to z, digits and hyphens`,
    `write a name into ${configName}, such as \`name: ${nameFrom(directory)}\`, or add --name NAME`,
  );
}
