/** Files of a commit that Git LFS keeps: the content takes the place of the pointers. */
import { chmodSync, copyFileSync, lstatSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { assertSize, type CheckedOut, type Completion, leaveOut } from "../complete-source.ts";
import { GitError, SourceRefused } from "../git-error.ts";
import { filesIn, megabytes, shownPath } from "../source-size.ts";
import { findServer } from "./find-server.ts";
import { askForObjects, download, LfsRefusal, type LfsServer, maxBatch } from "./lfs-server.ts";
import { type LfsPointer, looksLikePointer, maxPointerBytes, parsePointer } from "./pointer.ts";

interface LfsFile extends LfsPointer {
  /** In the directory. */
  path: string;
  /** How it is shown. */
  name: string;
}

/** Paths in one question to Git. */
const maxPaths = 200;
const shownFiles = 5;

/**
 * Fetches the content of what `.gitattributes` gives to LFS and is a pointer. What no attempt would bring stays a pointer, with a
 * warning. Throws a `GitError` where the next attempt may bring it, and a `SourceRefused` for more than a source may have.
 */
export async function fetchLfsFiles(part: CheckedOut, completion: Completion): Promise<void> {
  const files = await lfsFiles(part, completion);
  if (files.length === 0) return;
  const { request } = completion;
  assertRoom(files, completion);
  const names = namesOf(files);
  request.report?.(`fetching ${names} from LFS`);
  const keep = (left: readonly LfsFile[], reason: string) =>
    leaveOut(
      completion,
      `${namesOf(left)} is a pointer to LFS, whose content is left out: ${reason}`,
    );
  try {
    const server = await findServer(part, completion);
    const byId = Map.groupBy(files, ({ oid }) => oid);
    const pointers = [...byId.values()].flatMap(([first]) => first ?? []);
    for (let at = 0; at < pointers.length; at += maxBatch) {
      const asked = pointers.slice(at, at + maxBatch);
      const objects = await askForObjects(server, asked);
      for (const pointer of asked) {
        const found = objects.get(pointer.oid);
        const same = byId.get(pointer.oid) ?? [];
        if (!found || "problem" in found) keep(same, found?.problem ?? "");
        else await bring(found, pointer, same, { part, server, keep });
      }
    }
  } catch (error) {
    if (error instanceof LfsRefusal) return keep(files, error.message);
    if (!(error instanceof GitError) || error instanceof SourceRefused) throw error;
    throw new GitError(error.failure, `${names} from LFS: ${error.message}`, {
      cause: error.cause,
    });
  }
}

async function bring(
  found: { href: string; header: Record<string, string> },
  pointer: LfsFile,
  files: readonly LfsFile[],
  {
    part: { session, directory },
    server,
    keep,
  }: {
    part: CheckedOut;
    server: LfsServer;
    keep: (files: readonly LfsFile[], reason: string) => void;
  },
): Promise<void> {
  const scratch = join(session.directory, "lfs-object");
  try {
    await download(found, pointer, scratch, server);
  } catch (error) {
    if (error instanceof LfsRefusal) return keep(files, error.message);
    if (error instanceof SourceRefused)
      throw new SourceRefused(`LFS file ${pointer.name}: ${error.message}`);
    throw error;
  }
  for (const { path } of files) {
    const place = join(directory, path);
    const { mode } = lstatSync(place);
    rmSync(place);
    copyFileSync(scratch, place);
    chmodSync(place, mode & 0o777);
  }
  rmSync(scratch);
}

/** Before anything is sent: pointers say how large the content is. */
function assertRoom(files: readonly LfsFile[], completion: Completion): void {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const [largest] = files.toSorted((a, b) => b.size - a.size);
  if (!largest) return;
  const others = files.length > 1 ? ` and ${files.length - 1} more of LFS` : " of LFS";
  assertSize(completion, `${largest.name} (${megabytes(largest.size)})${others}`, bytes);
}

const namesOf = (files: readonly LfsFile[]): string => {
  const more = files.length > shownFiles ? ` and ${files.length - shownFiles} more` : "";
  return (
    files
      .slice(0, shownFiles)
      .map(({ name }) => name)
      .join(", ") + more
  );
};

async function lfsFiles(part: CheckedOut, completion: Completion): Promise<LfsFile[]> {
  const { directory, prefix, has } = part;
  const found: (LfsFile & { full: string; isReadable: boolean })[] = [];
  for (const { path, size } of filesIn(directory)) {
    if (size < 100 || size > maxPointerBytes || !has(path)) continue;
    const text = textOf(join(directory, path));
    if (!looksLikePointer(text)) continue;
    const pointer = parsePointer(text);
    const full = prefix === "" ? path : `${prefix}/${path}`;
    const { oid = "", size: bytes = 0 } = pointer ?? {};
    found.push({
      path,
      full,
      name: shownPath(full),
      oid,
      size: bytes,
      isReadable: pointer !== undefined,
    });
  }
  if (found.length === 0) return [];
  const filtered = await givenToLfs(
    part,
    found.map(({ full }) => full),
  );
  const files = found.filter(({ full }) => filtered.has(full));
  const unreadable = files.filter(({ isReadable }) => !isReadable);
  if (unreadable.length > 0)
    leaveOut(
      completion,
      `${namesOf(unreadable)} is a pointer to LFS, whose content is left out: it has extensions, or an unknown form`,
    );
  return files.filter(({ isReadable }) => isReadable);
}

/** Links count nothing, so no file is read through one. */
const textOf = (file: string): string =>
  lstatSync(file).isFile() ? readFileSync(file, "latin1") : "";

/** Those whose attribute `filter` is `lfs`: others only look as if they were pointers. */
async function givenToLfs(
  { git, commit, session }: CheckedOut,
  paths: readonly string[],
): Promise<Set<string>> {
  // Of the whole commit: a folder's attributes are also in the folders above.
  const env = { GIT_INDEX_FILE: join(session.directory, "attributes-index") };
  await git(["read-tree", commit], { env });
  const found = new Set<string>();
  for (let at = 0; at < paths.length; at += maxPaths) {
    const args = [
      "check-attr",
      "--cached",
      "-z",
      "filter",
      "--",
      ...paths.slice(at, at + maxPaths),
    ];
    const answers = (await git(args, { env })).split("\0");
    for (let each = 0; each + 2 < answers.length; each += 3)
      if (answers[each + 2] === "lfs") found.add(answers[each] ?? "");
  }
  return found;
}
