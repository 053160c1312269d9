import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import path from "node:path";
import { type OciMount } from "./oci-spec.ts";

/** In a container that waits: where the Pod's root directory appears (docs/adr/0029-warm-containers.md). */
export const stagePath = "/.pod";
export const terminationLogPath = "/dev/termination-log";
/** The runtime has made these, and the Pod's root directory gets them as they are. */
const kernelDirs = ["/proc", "/dev", "/sys"];
const bindOptions = ["nosuid", "nodev"];
/** Each takes a program: more of them could take longer than is waited for. */
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
mkdir "$1/root"
: > "$1/pivot_root"
: > "$1/termination-log"
mount -n --bind "$2" "$1/pivot_root"
shift 2
exec "$@"`;

export function stagedCommand(stage: string, pivotRoot: string, runtime: readonly string[]) {
  const own = ["unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c", stageScript, "sh"];
  return [...own, stage, pivotRoot, ...runtime];
}

/** Makes the place for a Pod's termination log, as the runtime does. */
export function preparationCommand(pid: number): string[] {
  const script = `: > ${terminationLogPath}`;
  return ["nsenter", "-t", String(pid), "-m", "--", "/bin/sh", "-c", script];
}

export interface Handover {
  /** The container's first process, and the runtime that waits for its end. */
  pid: number;
  monitor: number;
  stage: string;
  /** An empty directory on this machine, for the Pod's root directory. */
  root: string;
  plan: MountPlan;
  readOnly: boolean;
  hostName: string;
}

/**
 * Runs in the mount namespace of the waiting runtime. The Pod's root directory is made whole there, then shown to the container, and
 * there becomes the root directory of all that runs in it (pivot_root(2)); the former one, and the way to the outside, are taken out.
 */
const handoverScript = `
set -e
pid=$1 stage=$2 root=$3 overlay=$4 log=$5 access=$6 name=$7
shift 7
ns=/proc/$pid/ns/mnt
pod=${stagePath}
nsenter -t "$pid" -u -- /bin/sh -c 'printf %s "$1" > /proc/sys/kernel/hostname' sh "$name" & naming=$!
mount -n -t overlay -o "$overlay" overlay "$root"
while [ "$1" = d ]; do mkdir -p "$root$2"; shift 2; done
while [ "$1" = f ]; do
  [ -d "$root\${2%/*}" ] || mkdir -p "$root\${2%/*}"
  : > "$root$2"; shift 2
done
while [ "$1" = b ]; do mount -n --bind -o "$4" "$2" "$root$3"; shift 4; done
mount -n --rbind "$root" "$stage/root"
for each in ${kernelDirs.join(" ")}; do mount -n -N "$ns" --rbind "$each" "$pod/root$each"; done
if [ -n "$log" ]; then
  mount -n --bind "$log" "$stage/termination-log"
  mount -n -N "$ns" --move "$pod/termination-log" "$pod/root${terminationLogPath}"
  mount -n -N "$ns" -o remount,bind,${bindOptions.join(",")} "$pod/root${terminationLogPath}"
fi
nsenter -t "$pid" -m -- /bin/sh -c 'cd "$1/root" && exec "$1/pivot_root" . .' sh "$pod"
nsenter -t "$pid" -p -- umount -n -N "$ns" -l /
mount -n -N "$ns" --make-rprivate /
[ "$access" = rw ] || mount -n -N "$ns" -o remount,bind,ro /
wait "$naming"
# The container has its own by now, and nothing waits for the end of these.
{ umount -n -l "$stage"; umount -n -l "$root"; } < /dev/null > /dev/null 2>&1 &`;

export function handoverCommand(handover: Handover): string[] {
  const { pid, monitor, stage, root, plan, readOnly, hostName } = handover;
  const { overlay, missing, binds, terminationLog = "" } = plan;
  const own = ["nsenter", "-t", String(monitor), "-m", "--", "/bin/sh", "-c", handoverScript, "sh"];
  const how = [String(pid), stage, root, overlay, terminationLog, readOnly ? "ro" : "rw", hostName];
  const dirs = missing.flatMap((each) => (each.isDirectory ? ["d", each.path] : []));
  const files = missing.flatMap((each) => (each.isDirectory ? [] : ["f", each.path]));
  const bound = binds.flatMap((each) => ["b", each.source, each.destination, each.options]);
  return [...own, ...how, ...dirs, ...files, ...bound, "end"];
}

/** Throws unless the process's root directory is this overlay, and its mounts have no connection to others. */
export function assertHandedOver(pid: number, plan: MountPlan): void {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n").filter(Boolean);
  // Fields as in proc_pid_mountinfo(5).
  const mounts = lines.map((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , , at = "", , ...tags] = before.split(" ");
    return { at, tags, after };
  });
  const upper = plan.overlay.split(",").find((option) => option.startsWith("upperdir=")) ?? "?";
  const roots = mounts.filter(({ at }) => at === "/");
  const isWhole = roots.length === 1 && roots[0]?.after.split(/[ ,]/).includes(upper);
  const isClosed = mounts.every(
    ({ at, tags }) => tags.length === 0 && at !== stagePath && !at.startsWith(`${stagePath}/`),
  );
  if (!isWhole || !isClosed) throw new Error("the container's mounts are not as they have to be");
}
