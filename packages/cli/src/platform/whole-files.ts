/**
 * What a start reads in a data directory is looked at before anything is opened: a directory in the place of a file, a link to nowhere or
 * a file of another user ends the start with its name, and a FIFO would be waited for without end.
 */
import { accessSync, constants, readdirSync, type Stats, statSync } from "node:fs";
import path from "node:path";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

type WayOut = (root: string) => string;
const restored: WayOut = (root) =>
  `put a backup in its place with \`${spryCommand(`restore --force --data-dir ${root} FILE`)}\`, or start with another directory`;
const madeAgain: WayOut = () => "remove it: it is made again";

/** Which files there are, by their directory, and what is to be done about one that is damaged. */
const files: [directory: string, name: RegExp, wayOut: WayOut][] = [
  [
    "",
    /^(?:kubeconfig|gateway\.kubeconfig|endpoints\.json|gateway\.json|npmrc|pip\.conf)$/,
    madeAgain,
  ],
  ["", /^(?:system-images\.json|counts-token|metrics\.token|dashboard-key)$/, madeAgain],
  ["", /^registry\.json$/, () => "remove it: all logins at the registry are made again"],
  ["api", /^state\.db(?:-\w+)?$/, restored],
  [
    "api",
    /^service-account\.key$/,
    () => "restore it from a backup, or remove it: all tokens of ServiceAccounts are made again",
  ],
  ["events", /^queue\.db(?:-\w+)?$/, restored],
  [
    "pki",
    /\.(?:crt|key)$/,
    () => "remove it: it is issued again; clients need the new kubeconfig then",
  ],
  ["pki/front-proxy", /\.(?:crt|key)$/, madeAgain],
  ["logs", /\.log$/, madeAgain],
];
const directories = ["", "api", "events", "logs", "node", "pki", "pki/front-proxy", "registry"];

/** Throws a UserError that names the first that cannot be what it should be. */
export function assertWholeFiles(root: string): void {
  for (const directory of directories) {
    const at = path.join(root, directory);
    const found = lookAt(at);
    if (found && !found.isDirectory())
      throw new UserError(
        `${at} is not a directory`,
        directory === "" ? "choose another one with --data-dir" : restored(root),
      );
  }
  for (const [directory, name, wayOut] of files)
    for (const each of namesIn(path.join(root, directory)))
      if (name.test(each)) assertFile(path.join(root, directory, each), wayOut(root));
}

function assertFile(file: string, wayOut: string): void {
  const found = lookAt(file);
  if (found === undefined) throw new UserError(`${file} is a link to nowhere`, wayOut);
  if (!found.isFile())
    throw new UserError(`${file} is ${kindOf(found)} in place of a file`, wayOut);
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new UserError(`${file} cannot be read: ${(error as Error).message}`, wayOut, {
      cause: error,
    });
  }
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return "a directory";
  if (found.isFIFO()) return "a named pipe";
  return found.isSocket() ? "a socket" : "a device";
}

/** Of what a link leads to; undefined where that does not exist. */
function lookAt(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}
