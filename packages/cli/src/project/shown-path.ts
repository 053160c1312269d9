import path from "node:path";

/** A path as the user sees it: relative where that is shorter. */
export function shownPath(file: string): string {
  const relative = path.relative(process.cwd(), file);
  if (relative === "") return ".";
  return relative.startsWith("..") ? file : relative;
}
