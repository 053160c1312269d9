import { posix } from "node:path";
import { type SourceFile } from "./function-source.ts";
import { UserError } from "./user-error.ts";

export const requirementsFile = "requirements.txt";
const limits = { requirementFiles: 100 };

/** requirements.txt, and the files that it includes (`-r`, `-c`), each once. */
export function requirementFiles(files: readonly SourceFile[]): SourceFile[] {
  const found: SourceFile[] = [];
  const add = (path: string) => {
    const file = files.find((each) => each.path === path);
    if (!file || found.includes(file)) return;
    if (found.length >= limits.requirementFiles)
      throw new UserError(`${requirementsFile}: more than ${limits.requirementFiles} files`);
    found.push(file);
    for (const line of meaningfulLines(file.content.toString())) {
      refuseLocal(path, line);
      const included = /^(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)$/.exec(line)?.[1];
      if (included) add(posix.join(posix.dirname(path), included));
    }
  };
  add(requirementsFile);
  return found;
}

/** A build installs before it has the source: packages in the directory are not there. */
function refuseLocal(file: string, line: string): void {
  const [, named] =
    /^(?:-e|--editable)[\s=]+(\S+)/.exec(line) ??
    /^(?:\S+\s*@\s*)?((?:\.{1,2}\/|\/|file:)\S*|\.)/.exec(line) ??
    [];
  if (named === undefined || /^(?:git\+|https?:)/.test(named)) return;
  throw new UserError(
    `${file}: ${named} is a package in the directory, which is not installed: remove the line and import its modules from the directory (they are found below it, as \`libs.x\`), or publish the package to an index`,
  );
}

/** Lines without blanks around them, comments and empty ones. */
export function meaningfulLines(text: string): string[] {
  return text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
}
