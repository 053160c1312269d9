import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import path from "node:path";
import { escaped } from "../confinement/mount-table.ts";
import { type OciMount } from "./oci-spec.ts";

/** In a container that waits: where the Pod's root directory appears (docs/adr/0029-warm-containers.md). */
export const stagePath = "/.pod";
export const terminationLogPath = "/dev/termination-log";
/** The runtime has made these, and the Pod's root directory gets them as they are. */
const kernelDirs = ["/proc", "/dev", "/sys"];
const bindOptions = ["nosuid", "nodev"];
/** More than Functions have: they could take longer than is waited for. */
const maxMounts = 32;

/** What has to be mounted for a waiting container to become a Pod's. */
export interface MountPlan {
  /** Options of the overlay that is the Pod's root directory. */
  overlay: string;
  /** Mount points that neither image nor base has. */
  missing: { path: string; isDirectory: boolean }[];
  binds: { source: string; destination: string; options: string }[];
  terminationLog: string | undefined;
}

/**
 * Undefined where that needs more care than is taken here: the machine's own mount(8) follows links, so no mount point may
 * have one on its way. `layers` are of the root directory, topmost first, and change no more; `kept` are places where
 * nothing may be mounted.
 */
export function planMounts(
  rootMounts: readonly OciMount[],
  mounts: readonly OciMount[],
  layers: readonly string[],
  kept: readonly string[],
): MountPlan | undefined {
  const [root, ...more] = rootMounts;
  if (root?.type !== "overlay" || more.length > 0 || mounts.length > maxMounts) return undefined;
  const plan: MountPlan = {
    overlay: root.options.join(","),
    missing: [],
    binds: [],
    terminationLog: undefined,
  };
  const places = [...kernelDirs, stagePath, ...kept];
  if (!kernelDirs.every((dir) => placeIn(layers, dir, true) === "there")) return undefined;
  for (const { type, source, destination, options } of mounts) {
    if (type !== "bind") return undefined;
    if (destination === terminationLogPath && plan.terminationLog === undefined) {
      plan.terminationLog = source;
      continue;
    }
    if (places.some((place) => isNested(place, destination))) return undefined;
    places.push(destination);
    const isDirectory = statSync(source).isDirectory();
    const place = placeIn(layers, destination, isDirectory);
    if (place === undefined) return undefined;
    if (place === "missing") plan.missing.push({ path: destination, isDirectory });
    const access = options.includes("ro") ? "ro" : "rw";
    plan.binds.push({ source, destination, options: [...bindOptions, access].join(",") });
  }
  return plan;
}

const isNested = (one: string, other: string): boolean =>
  `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);

/** Whether a file or directory is there; undefined if a link, or something of another kind, is in its place or on its way. */
export function placeIn(
  layers: readonly string[],
  destination: string,
  isDirectory: boolean,
): "there" | "missing" | undefined {
  const names = destination.split("/").slice(1);
  for (let depth = 1; depth <= names.length; depth++) {
    const below = path.join(...names.slice(0, depth));
    const found = layers
      .map((layer) => lstatSync(path.join(layer, below), { throwIfNoEntry: false }))
      .filter((stat): stat is Stats => stat !== undefined);
    if (found.length === 0) return "missing";
    const isLast = depth === names.length;
    const isRight = (stat: Stats) => (isLast && !isDirectory ? stat.isFile() : stat.isDirectory());
    if (!found.every(isRight)) return undefined;
  }
  return "there";
}

/**
 * Starts the runtime in a mount namespace of the two. A directory of it is shared with the container: what is mounted there
 * later appears in the container. The machine's own mount table has none of it.
 */
const stageScript = `
set -e
mount -n -t tmpfs -o mode=700,size=64k tmpfs "$1"
mount -n --make-shared "$1"
mkdir "$1/root" "$1/pod"
: > "$1/pivot_root"
: > "$1/termination-log"
mount -n --bind "$2" "$1/pivot_root"
shift 2
exec "$@"`;

export function stagedCommand(stage: string, pivotRoot: string, runtime: readonly string[]) {
  const own = ["unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", stageScript, "sh"];
  return [...own, stage, pivotRoot, ...runtime];
}

/** What the helper says when it waits. */
export const prepared = "prepared\n";
/** The tables (fstab(5)) of what is mounted, in the bundle: by the runtime's mount namespace, and by the container's. */
const tables = { root: "root.fstab", own: "own.fstab", container: "container.fstab" };
/** Mount points that are files, one a line. */
const missingFiles = "missing-files";

/**
 * Waits next to a container, until it becomes a Pod's. It is in the mount namespace of the runtime, where the machine's files
 * and programs are, and otherwise in the container's namespaces, so that each step takes one program and no more: starting
 * programs is what takes the time. It has made the place for the Pod's termination log by then.
 *
 * The Pod's root directory is made whole there, then shown to the container, and there becomes the root directory of all that runs
 * in it (pivot_root(2)); the former one, and the way to the outside, are taken out. The helper ends before the container is given its
 * Function, and if there is none.
 */
const helperScript = `
set -e
pid=$1
ns=/proc/$pid/ns/mnt
nsenter --mount="$ns" -- /bin/sh -c ': > ${terminationLogPath}'
printf %s '${prepared}'
IFS= read -r bundle
IFS= read -r root
IFS= read -r name
printf %s "$name" > /proc/sys/kernel/hostname
if [ -s "$bundle/${missingFiles}" ]; then
  mount -n -i -a -T "$bundle/${tables.root}"
  while IFS= read -r file; do
    [ -d "$root\${file%/*}" ] || mkdir -p "$root\${file%/*}"
    : > "$root$file"
  done < "$bundle/${missingFiles}"
fi
mount -n -i -a -T "$bundle/${tables.own}"
mount -n -i -N "$ns" -a -T "$bundle/${tables.container}"
nsenter --mount="$ns" --wd=/proc/$pid/root${stagePath}/pod -- ${stagePath}/pivot_root . .
umount -n -i -N "$ns" -l /`;

/** @param monitor the runtime that waits for the end of the container, whose first process is `pid` */
export function helperCommand(pid: number, monitor: number): string[] {
  const namespaces = [
    `--mount=/proc/${monitor}/ns/mnt`,
    `--uts=/proc/${pid}/ns/uts`,
    `--pid=/proc/${pid}/ns/pid`,
  ];
  return ["nsenter", ...namespaces, "--", "/bin/sh", "-c", helperScript, "sh", String(pid)];
}

export interface Handover {
  stage: string;
  bundle: string;
  /** An empty directory on this machine, for the Pod's root directory. */
  root: string;
  plan: MountPlan;
  readOnly: boolean;
  hostName: string;
}

/** What the helper needs: files of the bundle, by their names, and the lines that it waits for. */
export function handoverOf({ stage, bundle, root, plan, readOnly, hostName }: Handover): {
  files: Record<string, string>;
  lines: string;
} {
  const { overlay, missing, binds, terminationLog } = plan;
  const dirs = new Set(missing.filter((each) => each.isDirectory).map((each) => each.path));
  const files = missing.filter((each) => !each.isDirectory).map((each) => each.path);
  const lines = [bundle, root, hostName];
  for (const text of [...lines, ...files])
    if (text.includes("\n")) throw new Error("a line break in a path or name");
  const rootLine = tableLine("overlay", root, "overlay", overlay);
  const bound = binds.map(({ source, destination, options }) => {
    const make = dirs.has(destination) ? ",X-mount.mkdir" : "";
    return bindLine(source, root + destination, `bind,${options}${make}`);
  });
  const own = [...bound, bindLine(root, `${stage}/root`, "rbind")];
  const pod = `${stagePath}/pod`;
  const container = [
    // A copy: like the mounts below it, it has no connection to others.
    bindLine(`${stagePath}/root`, pod, `rbind,rprivate${readOnly ? ",ro" : ""}`),
    ...kernelDirs.map((dir) => bindLine(dir, pod + dir, "rbind,rprivate")),
  ];
  if (terminationLog !== undefined) {
    const [from, options] = ["/termination-log", ["bind", ...bindOptions].join(",")];
    own.push(bindLine(terminationLog, stage + from, "bind"));
    container.push(bindLine(stagePath + from, pod + terminationLogPath, `${options},private`));
  }
  const texts = {
    [tables.root]: [rootLine],
    [tables.own]: files.length > 0 ? own : [rootLine, ...own],
    [tables.container]: container,
    [missingFiles]: files,
  };
  return { files: mapValues(texts, joined), lines: joined(lines) };
}

const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

const mapValues = <A, B>(all: Record<string, A>, by: (one: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(all).map(([name, one]) => [name, by(one)]));

const bindLine = (source: string, target: string, options: string): string =>
  tableLine(source, target, "none", options);

const tableLine = (source: string, target: string, type: string, options: string): string =>
  `${escaped(source)} ${escaped(target)} ${type} ${escaped(options)} 0 0`;

/**
 * Throws unless the process's root directory is this overlay, all that is to be mounted is, as writable as it is to be, and no mount
 * has a connection to others.
 */
export function assertHandedOver(pid: number, { plan, readOnly }: Handover): void {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n").filter(Boolean);
  // Fields as in proc_pid_mountinfo(5).
  const mounts = lines.map((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , , at = "", options = "", ...tags] = before.split(" ");
    return { at: unescaped(at), access: options.split(",")[0], tags, after };
  });
  const upper = plan.overlay.split(",").find((option) => option.startsWith("upperdir=")) ?? "?";
  const isThere = (place: string, access: string | undefined) => {
    const found = mounts.filter(({ at }) => at === place);
    return found.length === 1 && found[0]?.access === access;
  };
  const isWhole =
    isThere("/", readOnly ? "ro" : "rw") &&
    mounts.some(({ at, after }) => at === "/" && after.split(/[ ,]/).includes(upper)) &&
    plan.binds.every((each) => isThere(each.destination, each.options.split(",").at(-1))) &&
    (plan.terminationLog === undefined || isThere(terminationLogPath, "rw"));
  const isClosed = mounts.every(
    ({ at, tags }) => tags.length === 0 && at !== stagePath && !at.startsWith(`${stagePath}/`),
  );
  if (!isWhole || !isClosed) throw new Error("the container's mounts are not as expected");
}

const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
