import {
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { GitError } from "../git-error.ts";
import { findMonorepo, type Monorepo } from "./monorepo.ts";
import { type Tree } from "./tree.ts";

const limits = { files: 500_000, depth: 64 };
/** Generated, or not part of the source. */
const leftOut = new Set(["node_modules", ".git", ".venv", "__pycache__"]);

/**
 * Finds what a folder on this machine depends on around it, as `fetchSource` does for one of a commit, and brings
 * that to `destination`. It is looked for in the folder's Git working tree, or where that is none, below the
 * outermost package.json.
 */
export async function copyMonorepo(
  folder: string,
  destination: string,
): Promise<Monorepo | undefined> {
  const real = realpathSync(folder);
  const root = rootOf(real);
  return findMonorepo(slashed(relative(root, real)), destination, folderTree(root));
}

/** A directory and what is below it, as far as it is source. */
export function folderTree(root: string): Tree {
  let known: Promise<ReadonlySet<string>> | undefined;
  const isFile = (name: string) =>
    lstatSync(join(root, name), { throwIfNoEntry: false })?.isFile() === true;
  return {
    present: (files) => Promise.resolve(files.filter(isFile)),
    list: () => (known ??= Promise.resolve(new Set(filesBelow(root, "")))),
    checkOut(names, destination) {
      mkdirSync(destination, { recursive: true });
      for (const name of new Set(names)) {
        const files = name.endsWith("/") ? filesBelow(root, name.slice(0, -1)) : [name];
        for (const file of files) copy(join(root, file), join(destination, file));
      }
      return Promise.resolve();
    },
  };
}

/** Links are taken as they are: the builder looks where they lead. */
function copy(from: string, to: string): void {
  if (lstatSync(to, { throwIfNoEntry: false })) return;
  mkdirSync(dirname(to), { recursive: true });
  if (lstatSync(from).isSymbolicLink()) symlinkSync(readlinkSync(from), to);
  else copyFileSync(from, to, constants.COPYFILE_FICLONE);
}

function filesBelow(root: string, folder: string): string[] {
  const files: string[] = [];
  const visit = (below: string, depth: number) => {
    for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
      if (leftOut.has(entry.name)) continue;
      const name = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory() && depth < limits.depth) visit(name, depth + 1);
      else if (entry.isFile() || entry.isSymbolicLink()) files.push(name);
      if (files.length > limits.files)
        throw new GitError(
          "unrecoverable",
          `the repository was assumed to begin at ${root}, which has more than ${limits.files} files: run \`git init\` in the folder at which it begins`,
        );
    }
  };
  visit(folder, 0);
  return files;
}

/** The folder itself where nothing around it says more. */
function rootOf(folder: string): string {
  let outermost = folder;
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (existsSync(join(at, "package.json"))) outermost = at;
    if (at === dirname(at)) return outermost;
  }
}

const slashed = (path: string) => path.split(sep).join("/");
