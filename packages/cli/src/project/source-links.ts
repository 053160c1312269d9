/** Symbolic links of a source: they are sent as links, and must lead to something that is sent. */
import { lstatSync } from "node:fs";
import path from "node:path";
import { followLink, type LinkEnd, type SourceEntryKind } from "@spry/function";
import { UserError } from "../user-error.ts";
import { type SourceEntry, type SourceList } from "./files.ts";

/** A link that can be sent, or why it cannot be. */
export type LinkEntry = { entry: SourceEntry } | { name: string; problem: UserError };

const leave = "list the link in .spryignore";

/** `links`: path and text of each. */
export function followLinks(
  root: string,
  { files, folders }: Pick<SourceList, "files" | "folders">,
  links: ReadonlyMap<string, string>,
): LinkEntry[] {
  const kinds = new Map<string, SourceEntryKind>([
    ...files.map((file) => [file.path, "file"] as const),
    ...folders.map((folder) => [folder, "folder"] as const),
    ...[...links].map(([name, link]) => [name, { link }] as const),
  ]);
  const modes = new Map(files.map((file) => [file.path, file.isExecutable]));
  const entryAt = (name: string) =>
    kinds.get(name) ?? (path.posix.basename(name) === "node_modules" ? "installed" : undefined);
  return [...links].map(([name, text]) => {
    const end = followLink(name, entryAt);
    const problem = problemOf(root, name, text, end);
    if (problem) return { name, problem };
    const isFolder = end.kind !== "file";
    const isExecutable = !isFolder && modes.get(end.path) === true;
    const file = path.join(root, end.path);
    const link = { text, end: end.path, isFolder };
    return { entry: { path: name, file, size: 0, isExecutable, version: text, link } };
  });
}

function problemOf(root: string, name: string, text: string, end: LinkEnd): UserError | undefined {
  if (end.kind === "file" || end.kind === "folder" || end.kind === "installed") return undefined;
  if (end.kind === "absolute" || end.kind === "outside") {
    const isInside = path.resolve(root, path.dirname(name), text).startsWith(root + path.sep);
    return isInside
      ? new UserError(
          `${name} is a symbolic link with an absolute path, ${text}`,
          `make it relative, or ${leave}`,
        )
      : new UserError(
          `${name} is a symbolic link out of the directory, to ${text}`,
          `copy the file into the directory, or ${leave}`,
        );
  }
  if (end.kind === "circle")
    return new UserError(
      `${name} is a symbolic link that leads in a circle, to ${text}`,
      `delete it, or ${leave}`,
    );
  return lstatSync(path.join(root, end.path), { throwIfNoEntry: false })
    ? new UserError(
        `${name} is a symbolic link to ${end.path}, which is not among the files that are sent`,
        `take ${end.path} out of .spryignore or .gitignore, or ${leave}`,
      )
    : new UserError(
        `${name} is a symbolic link to a file that does not exist, ${text}`,
        `delete it, or ${leave}`,
      );
}

/** Where links cannot be kept: for each one the file, or the files in the folder, that it leads to, under its name. */
export function copiesForLinks(files: readonly SourceEntry[]): SourceEntry[] {
  return files.flatMap(({ path: name, link }) => {
    if (!link) return [];
    const below = link.end === "" ? "" : `${link.end}/`;
    return files
      .filter((file) => !file.link && (file.path === link.end || file.path.startsWith(below)))
      .map((file) => ({ ...file, path: copyName(name, link.end, file.path) }));
  });
}

const copyName = (name: string, end: string, file: string): string =>
  end === "" ? `${name}/${file}` : `${name}${file.slice(end.length)}`;
