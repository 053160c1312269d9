import { execFileSync } from "node:child_process";

const maxListBytes = 64 * 1024 ** 2;

/**
 * The files of a checkout below some of its paths, as Git knows them: what else lies there (a `.env`, notes, an editor's
 * copies) is the developer's, and must not be published.
 */
export function trackedFiles(root: string, paths: readonly string[]): string[] {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  let list: string;
  try {
    list = execFileSync("git", ["ls-files", "-z", "--", ...paths], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: maxListBytes,
      env: Object.fromEntries(environment),
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    throw new Error("the package is made of the files that Git knows: run this in a checkout", {
      cause: error,
    });
  }
  const files = list.split("\0").filter((file) => file !== "");
  const empty = paths.filter((each) => !files.some((file) => `${file}/`.startsWith(`${each}/`)));
  if (empty.length > 0) throw new Error(`Git knows no file of ${empty.join(", ")}`);
  return files;
}
