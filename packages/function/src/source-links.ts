/**
 * Symbolic links of a source: which ones are carried, decided once for Git, directories and uploads. A link is kept as it is when it is
 * relative and leads to a file or folder of the same source. All others are refused by name.
 */

/** What is at a path of a source. `installed`: what comes there later, with the dependencies. */
export type SourceEntryKind = "file" | "folder" | "installed" | { link: string };

/** Where a link leads in the end, or why it cannot be carried: the path at which that shows. */
export type LinkEnd =
  | { kind: "file" | "folder" | "installed"; path: string }
  | { kind: "absolute" | "outside" | "circle" | "missing"; path: string };

/** As many as the kernel follows in one path (path_resolution(7)). */
const maxLinks = 40;

/**
 * Follows what is at a path by its text alone, as the kernel does: each part in turn, and links as they come.
 * @param entryAt what is at a path, relative to the source and with `/` between its parts; undefined for nothing
 */
export function followLink(
  path: string,
  entryAt: (path: string) => SourceEntryKind | undefined,
): LinkEnd {
  const at: string[] = [];
  const rest = path.split("/");
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (at.pop() === undefined) return { kind: "outside", path: ".." };
      continue;
    }
    const here = [...at, name].join("/");
    const entry = entryAt(here);
    if (entry === undefined) return { kind: "missing", path: here };
    if (entry === "installed") return { kind: "installed", path: here };
    if (entry === "folder") at.push(name);
    else if (entry === "file")
      return rest.length === 0 ? { kind: "file", path: here } : { kind: "missing", path: here };
    else if (entry.link.startsWith("/")) return { kind: "absolute", path: here };
    else if (++links > maxLinks) return { kind: "circle", path: here };
    else rest.unshift(...entry.link.split("/"));
  }
  return { kind: "folder", path: at.join("/") };
}
