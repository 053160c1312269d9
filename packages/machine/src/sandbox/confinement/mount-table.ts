import { mkdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
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
 * mounts everything there, parents first. Directories that do not exist are left out, and so are those that a
 * directory mounted before shows anyway. The jail, with the root directory in it, becomes a read-only mount; `/tmp`
 * can be written to.
 */
export function mountTable(
  { jail, root }: { jail: string; root: string },
  wanted: readonly Bind[],
): string {
  const mounts = mountsOf(root, wanted, []);
  const lines = mounts.map(({ source, path: at, access }) => line(source, root + at, access));
  const itself = (dir: string, how: string) => `${escaped(dir)} ${escaped(dir)} none ${how} 0 0`;
  lines.unshift(itself(jail, "rbind,ro,nosuid,nodev,noexec"));
  const tmp = path.join(root, "tmp");
  // Where the data directory is below, for one. It is a mount already when the jail becomes one.
  if (!mounts.some((each) => each.path === "/tmp")) lines.unshift(itself(tmp, "bind"));
  lines.push(`proc ${escaped(path.join(root, "proc"))} proc nosuid,nodev,noexec 0 0`);
  return `${lines.join("\n")}\n`;
}

/**
 * The table of what is mounted later, in a mount namespace that has the machine's tree at `seen.machine` and the root
 * directory at `seen.root`; `root` is where the machine has it, for mount points. `mounted` is there already. Throws
 * when something would cover what is.
 */
export function laterMountTable(
  { root, seen }: { root: string; seen: { root: string; machine: string } },
  wanted: readonly Bind[],
  mounted: readonly Bind[],
): string {
  const mounts = mountsOf(root, wanted, mounted);
  for (const { path: at } of mounts)
    if (mounted.some((each) => each.path.startsWith(`${at}/`)))
      throw new Error(`mounting ${at}: something below it is mounted already`);
  const lines = mounts.map(({ source, path: at, access }) =>
    // A link on the way would lead to another place there.
    line(seen.machine + realpathSync(source), seen.root + at, access),
  );
  return `${lines.join("\n")}\n`;
}

/** What is to be mounted, parents first; makes the mount points. */
function mountsOf(
  root: string,
  wanted: readonly Bind[],
  before: readonly Bind[],
): (Bind & { source: string })[] {
  const depth = (each: Bind) => each.path.split("/").length;
  const mounted = before.toSorted((a, b) => depth(a) - depth(b));
  const all = [...before, ...wanted];
  const mounts: (Bind & { source: string })[] = [];
  for (const bind of wanted.toSorted((a, b) => depth(a) - depth(b))) {
    const source = bind.source ?? bind.path;
    const stats = statSync(source, { throwIfNoEntry: false });
    if (!stats) continue;
    if (bind.isOptional && all.some((each) => each.path.startsWith(`${bind.path}/`))) continue;
    const above = mounted.findLast((each) => isWithin(bind.path, each.path));
    const isShown = above !== undefined && shows(above, bind.path, source);
    // A place within what is mounted can be no other: it may be a link, which would be followed on the machine.
    if (above !== undefined && !isShown) continue;
    if (isShown && bind.access === "read" && above.access === "read") continue;
    if (above?.path === bind.path && above.access === bind.access) continue;
    if (!isShown) makeMountPoint(root + bind.path, stats.isDirectory());
    mounted.push(bind);
    mounts.push({ ...bind, source });
  }
  return mounts;
}

function line(source: string, target: string, access: Bind["access"]): string {
  return `${escaped(source)} ${escaped(target)} none ${options[access]} 0 0`;
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
export function escaped(file: string): string {
  return file.replace(
    /[\t-\r \\#]/g,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}
