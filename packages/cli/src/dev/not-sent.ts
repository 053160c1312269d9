/** What runs on this machine and would not on the platform, because files are missing there. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { type SourceList } from "../project/files.ts";
import { hasBuildScript, type Project } from "../project/project.ts";

const code = /\.(?:[cm]?[jt]sx?|py)$/;
const maxBytes = 2_000_000;

/** One sentence for each; none of a file that no code mentions, and of `.env`, which `spry dev` reads itself. */
export function notSent({ files, keptBack, remark, problem }: SourceList): string[] {
  const secrets = keptBack.filter((file) => file !== ".env");
  const mentioned = secrets.length === 0 ? [] : mentionedIn(files, secrets);
  return [
    ...(problem ? [`spry deploy refuses this directory: ${problem.message}`] : []),
    ...(remark === undefined ? [] : [remark]),
    ...mentioned.map(
      (file) =>
        `${file} may hold secrets, and spry deploy does not send it: the code finds it only here (\`!${file}\` in .spryignore sends it)`,
    ),
  ];
}

function mentionedIn(files: SourceList["files"], secrets: readonly string[]): string[] {
  let room = maxBytes;
  const texts = files
    .filter(({ path: name, link, size }) => !link && code.test(name) && (room -= size) > 0)
    .map(({ file }) => textOf(file));
  return secrets.filter((each) => texts.some((text) => text.includes(path.posix.basename(each))));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** A sentence about what a directory asks for and `spry dev` does not do; undefined if there is nothing. */
export function limitationOf({ root }: Project): string | undefined {
  if (!hasBuildScript(root)) return undefined;
  return `package.json has a build script, which a build of the image runs and spry dev does not: run its watch mode in ${path.basename(root)}`;
}
