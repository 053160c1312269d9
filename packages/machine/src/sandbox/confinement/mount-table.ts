import { mkdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

/** A file or directory of the machine that a container sees, at its own path unless `source` is another one. */
export interface Bind {
  path: string;
  source?: string;
  /** `device`: readable and writable as the machine's own device is. */
  access: "read" | "write" | "device";
  /** Not mounted where something else has to be mounted below. */
  isOptional?: boolean;
}

const options = {
  read: "bind,ro,nosuid,nodev",
  write: "bind,nosuid,nodev",
  device: "bind,nosuid,noexec",
};

/**
 * Makes the mount points of a container's root directory, and returns the table (fstab(5)) by which one mount(8)
 * mounts everything there, parents first. What is not there is left out; so is what a directory mounted before
 * shows anyway. The jail, with the root directory in it, becomes a mount that cannot be written to; `/tmp` can.
 */
export function mountTable(
  { jail, root }: { jail: string; root: string },
  wanted: readonly Bind[],
): string {
  const mounted: Bind[] = [];
  const lines: string[] = [];
  const depth = (each: Bind) => each.path.split("/").length;
  for (const bind of wanted.toSorted((a, b) => depth(a) - depth(b))) {
    const source = bind.source ?? bind.path;
    const stats = statSync(source, { throwIfNoEntry: false });
    if (!stats) continue;
    if (bind.isOptional && wanted.some((each) => each.path.startsWith(`${bind.path}/`))) continue;
    const above = mounted.findLast((each) => isWithin(bind.path, each.path));
    const isShown = above !== undefined && shows(above, bind.path, source);
    // A place within what is mounted can be no other: it may be a link, which would be followed on the machine.
    if (above !== undefined && !isShown) continue;
    if (isShown && bind.access === "read" && above.access === "read") continue;
    if (above?.path === bind.path && above.access === bind.access) continue;
    const target = root + bind.path;
    if (!isShown) makeMountPoint(target, stats.isDirectory());
    mounted.push(bind);
    lines.push(`${escaped(source)} ${escaped(target)} none ${options[bind.access]} 0 0`);
  }
  const itself = (dir: string, how: string) => `${escaped(dir)} ${escaped(dir)} none ${how} 0 0`;
  lines.unshift(itself(jail, "rbind,ro,nosuid,nodev,noexec"));
  const tmp = path.join(root, "tmp");
  // Where the data directory is below, for one. It is a mount already when the jail becomes one.
  if (!mounted.some((each) => each.path === "/tmp")) lines.unshift(itself(tmp, "bind"));
  lines.push(`proc ${escaped(path.join(root, "proc"))} proc nosuid,nodev,noexec 0 0`);
  return `${lines.join("\n")}\n`;
}

function isWithin(file: string, dir: string): boolean {
  return file === dir || file.startsWith(`${dir}/`);
}

/** Whether the mounted directory has, at the path, what is to be there. */
function shows(above: Bind, at: string, source: string): boolean {
  return (above.source ?? above.path) + at.slice(above.path.length) === source;
}

function makeMountPoint(target: string, isDirectory: boolean): void {
  mkdirSync(isDirectory ? target : path.dirname(target), { recursive: true, mode: 0o755 });
  if (!isDirectory) writeFileSync(target, "");
}

/** What separates fields and lines of the table, in ASCII: the bytes of other characters mean themselves. */
function escaped(file: string): string {
  return file.replace(
    /[\t-\r \\#]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}
