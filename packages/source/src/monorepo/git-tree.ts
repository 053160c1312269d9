import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GitError } from "../git-error.ts";
import { type Tree } from "./tree.ts";

export interface GitTreeOptions {
  commit: string;
  gitDir: string;
  /** Runs git there. */
  git: (args: string[], limits?: { maxOutputBytes?: number }) => Promise<string>;
  /** Of the names of all files. */
  maxNamesBytes: number;
}

/** A commit. What is missing of it comes with one request for each call. */
export function gitTree({ commit, gitDir, git, maxNamesBytes }: GitTreeOptions): Tree {
  const list = ["ls-tree", "-z", "--name-only"];
  const namesIn = (output: string) => output.split("\0").filter(Boolean);
  return {
    async present(files) {
      return namesIn(await git(["--literal-pathspecs", ...list, commit, "--", ...files]));
    },
    async list() {
      return new Set(
        namesIn(await git([...list, "-r", commit], { maxOutputBytes: maxNamesBytes })),
      );
    },
    /** Git refuses paths that lead out or into a `.git`, and writes through no link. */
    async checkOut(names, destination) {
      mkdirSync(destination, { recursive: true });
      mkdirSync(join(gitDir, "info"), { recursive: true });
      writeFileSync(join(gitDir, "info/sparse-checkout"), names.map(patternOf).join(""));
      await git(["read-tree", "--empty"]);
      const settings = ["-c", "core.bare=false", "-c", "core.sparseCheckout=true"];
      await git(["--work-tree", destination, ...settings, "read-tree", "--reset", "-u", commit]);
    },
  };
}

/** As gitignore(5) describes them. */
function patternOf(name: string): string {
  if (name.includes("\n"))
    throw new GitError(
      "unrecoverable",
      `${JSON.stringify(name)} is not a valid name of a package's folder`,
    );
  return `/${name.replace(/[\\*?[\] ]/g, "\\$&")}\n`;
}
