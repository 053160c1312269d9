import { UserError } from "../user-error.ts";

const sentences: Record<string, string> = {
  ENOSPC: "has no space left",
  EDQUOT: "has no space left for this user",
  EROFS: "is read-only",
  EACCES: "belongs to another user, or may not be written",
  EPERM: "belongs to another user, or may not be written",
  ENOTDIR: "is not a directory",
};
/** Result codes of SQLite that mean the same. */
const sqliteCodes: Record<number, string> = { 8: "EROFS", 13: "ENOSPC" };
const maxDepth = 10;

/** The one sentence for an error that comes from the disk under a data directory; undefined for any other error. */
export function diskProblem(error: unknown, root: string): UserError | undefined {
  let cause = error;
  for (let depth = 0; cause instanceof Error && depth < maxDepth; depth++) {
    if (cause instanceof UserError) return undefined;
    const sentence = sentences[codeOf(cause)];
    if (sentence && isBelow(cause, root)) {
      return new UserError(
        `the data directory ${root} ${sentence}`,
        "solve that, or choose another directory with --data-dir",
        { cause: error },
      );
    }
    cause = cause.cause;
  }
  return undefined;
}

function codeOf(error: Error): string {
  const { code, errcode, stderr } = error as { code?: unknown; errcode?: number; stderr?: unknown };
  if (errcode !== undefined) return sqliteCodes[errcode & 0xff] ?? "";
  // Of a program that was started for the purpose.
  if (typeof stderr === "string") return /\b(ENOSPC|EDQUOT|EROFS)\b/.exec(stderr)?.[1] ?? "";
  return typeof code === "string" ? code : "";
}

/** Ports and programs, too, may be out of bounds: those errors name no file of the directory. */
function isBelow(error: Error, root: string): boolean {
  const { path } = error as NodeJS.ErrnoException;
  return path === undefined
    ? !["EACCES", "EPERM", "ENOTDIR"].includes(codeOf(error))
    : path.startsWith(root) || root.startsWith(path);
}
