import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { removeTree } from "../remove-tree.ts";

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
 * can be written to: where the Pod's is not mounted there, because other things have to be mounted below it, `tmp` is, a
 * directory on the disk.
 */
export function mountTable(
  { jail, root, tmp }: { jail: string; root: string; tmp: string },
  wanted: readonly Bind[],
): string {
  const isTmpShown = isMounted("/tmp", wanted);
  if (!isTmpShown) makeTmp(tmp);
  const mounts = mountsOf(placesIn(root, isTmpShown ? undefined : tmp), wanted, []);
  const lines = mounts.map(({ source, path: at, access }) => line(source, root + at, access));
  lines.unshift(`${escaped(jail)} ${escaped(jail)} none rbind,ro,nosuid,nodev,noexec 0 0`);
  // It is a mount already when the jail becomes one.
  if (!isTmpShown) lines.unshift(line(tmp, path.join(root, "tmp"), "write"));
  lines.push(`proc ${escaped(path.join(root, "proc"))} proc nosuid,nodev,noexec 0 0`);
  return `${lines.join("\n")}\n`;
}

/**
 * The table of what is mounted later, in a mount namespace that has the machine's tree at `seen.machine` and the root
 * directory at `seen.root`; `root` is where the machine has it, for mount points, and `tmp` what is mounted at `/tmp`.
 * `mounted` is there already. Throws when something would cover what is.
 */
export function laterMountTable(
  { root, tmp, seen }: { root: string; tmp: string; seen: { root: string; machine: string } },
  wanted: readonly Bind[],
  mounted: readonly Bind[],
): string {
  const mounts = mountsOf(placesIn(root, tmp), wanted, mounted);
  for (const { path: at } of mounts)
    if (mounted.some((each) => each.path.startsWith(`${at}/`)))
      throw new Error(`mounting ${at}: something below it is mounted already`);
  const lines = mounts.map(({ source, path: at, access }) =>
    // A link on the way would lead to another place there.
    line(seen.machine + realpathSync(source), seen.root + at, access),
  );
  return `${lines.join("\n")}\n`;
}

/** Whether a path of its own is mounted, which gives way to others below it. */
function isMounted(at: string, wanted: readonly Bind[]): boolean {
  return wanted.some(
    (bind) =>
      bind.path === at &&
      !(bind.isOptional && wanted.some((each) => each.path.startsWith(`${at}/`))) &&
      statSync(bind.source ?? at, { throwIfNoEntry: false }) !== undefined,
  );
}

/** Empty: no container has put a link in the way of a mount. */
function makeTmp(tmp: string): void {
  setAside(tmp);
  mkdirSync(tmp);
  chmodSync(tmp, 0o1777);
}

/** Makes room for a directory. What an earlier run of the container has left there may be much: it is removed while others go on. */
export function setAside(tmp: string): void {
  mkdirSync(path.dirname(tmp), { recursive: true, mode: 0o700 });
  if (!existsSync(tmp)) return;
  const former = `${tmp}.former-${randomBytes(4).toString("hex")}`;
  renameSync(tmp, former);
  // What cannot be removed now goes with the Pod.
  void removeTree(former).catch(() => {});
}

/** Where the machine has the mount point for a path of the container. */
function placesIn(root: string, tmp: string | undefined): (at: string) => string {
  return (at) =>
    tmp !== undefined && at.startsWith("/tmp/") ? tmp + at.slice("/tmp".length) : root + at;
}

/** What is to be mounted, parents first; makes the mount points. */
function mountsOf(
  placeOf: (at: string) => string,
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
    if (!isShown) makeMountPoint(placeOf(bind.path), stats.isDirectory());
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
