/** An earlier version of this repository, to upgrade from: `SPRY_TEST_PREVIOUS`, or the last tag, or some commits ago. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { cleanEnvironment, root } from "./platform.ts";

const commitsAgo = 30;

function git(...args: string[]): string | undefined {
  try {
    const stdio = ["ignore", "pipe", "ignore"] as ["ignore", "pipe", "ignore"];
    return execFileSync("git", ["-C", root, ...args], { encoding: "utf8", stdio }).trim();
  } catch {
    return undefined;
  }
}

/** A commit's name; undefined where there is no history. */
export function previousVersion(): string | undefined {
  const wished = process.env["SPRY_TEST_PREVIOUS"];
  const tag = () => git("describe", "--tags", "--abbrev=0", "HEAD^");
  return git("rev-parse", "--verify", `${wished ?? tag() ?? `HEAD~${commitsAgo}`}^{commit}`);
}

/** The last commit without this file; undefined where there is no history of it. */
export function versionBefore(file: string): string | undefined {
  const added = git("log", "--diff-filter=A", "--format=%H", "-1", "--", file);
  return added ? git("rev-parse", "--verify", `${added}^^{commit}`) : undefined;
}

export const whyNoPrevious = (): string | undefined =>
  previousVersion() ? undefined : "there is no history to take an earlier version from";

/** Its files, and the packages that it needs. */
export function checkOut(commit: string, directory: string): void {
  mkdirSync(directory, { recursive: true });
  const maxBuffer = 256 * 2 ** 20;
  const archive = execFileSync("git", ["-C", root, "archive", commit], { maxBuffer });
  execFileSync("tar", ["-x", "-C", directory], { input: archive });
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"], {
    cwd: directory,
    env: cleanEnvironment(),
    stdio: "ignore",
  });
}
