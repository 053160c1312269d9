/** The folder that is built, in a commit: it may be a link, or be behind one. */
import { GitError } from "./git-error.ts";

/** As many as the kernel follows in one path (path_resolution(7)). */
const maxLinks = 40;
const maxLinkBytes = 4096;

type RunGit = (args: string[], limits?: { maxOutputBytes?: number }) => Promise<string>;

/**
 * The folder's own path, after all links. Throws a `GitError` for one that is not there, that is something else, or to which a link
 * leads that cannot be followed inside of the repository.
 */
export async function folderInCommit(commit: string, folder: string, git: RunGit): Promise<string> {
  if (folder === "" || (await entryAt(commit, folder, git))?.type === "tree") return folder;
  const name = JSON.stringify(folder);
  const refused = (what: string) =>
    new GitError("unrecoverable", `baseDir ${name} ${what} at commit ${commit}`);
  const out = (link: string) =>
    new GitError(
      "unrecoverable",
      `baseDir ${name} is not a folder of the repository at commit ${commit}: the link ${JSON.stringify(link)} leads out of it`,
    );
  const at: string[] = [];
  const rest = folder.split("/");
  let last = folder;
  let links = 0;
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      if (at.pop() === undefined) throw out(last);
      continue;
    }
    const here = [...at, part].join("/");
    const entry = await entryAt(commit, here, git);
    if (!entry) throw refused("does not exist");
    if (entry.type === "commit") throw refused("is a submodule");
    if (entry.type === "tree") at.push(part);
    else if (entry.mode !== "120000") throw refused("is not a folder");
    else {
      const limits = { maxOutputBytes: maxLinkBytes };
      const target = await git(["cat-file", "blob", entry.id], limits);
      if (target.startsWith("/")) throw out(here);
      if (++links > maxLinks) throw refused("is a link that leads in a circle");
      last = here;
      rest.unshift(...target.split("/"));
    }
  }
  return at.join("/");
}

async function entryAt(
  commit: string,
  path: string,
  git: RunGit,
): Promise<{ mode: string; type: string; id: string } | undefined> {
  const listed = await git(["--literal-pathspecs", "ls-tree", "-z", commit, "--", path]);
  const [, mode, type, id] = /^(\d+) (\w+) (\w+)\t/.exec(listed) ?? [];
  return mode && type && id ? { mode, type, id } : undefined;
}
