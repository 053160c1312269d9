import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from "node:fs";
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Bind } from "./mount-table.ts";

/** Programs and libraries. Homes, `/var`, `/run`, `/opt`, `/srv` and all else are not shown. */
const systemDirs = [
  "bin",
  "sbin",
  "lib",
  "lib32",
  "lib64",
  "libx32",
  "usr",
  "nix/store",
  "gnu/store",
  "var/lib/ca-certificates",
].map((name) => `/${name}`);

/** What programs look up: names, certificates. Mounted, because it changes, or because it is large. */
const settings = "alternatives crypto-policies hosts pki resolv.conf ssl".split(" ").map(inEtc);
/** Small files that stay as they are: each mount costs a start a third of a millisecond. */
const copied =
  "gai.conf host.conf ld.so.cache locale.alias localtime mime.types nsswitch.conf protocols services timezone"
    .split(" ")
    .map(inEtc);

function inEtc(name: string): string {
  return `/etc/${name}`;
}

const devices = ["null", "zero", "random", "urandom", "tty"].map((name) => `/dev/${name}`);

const deviceLinks: Record<string, string> = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
};

/** What every container sees of the machine itself. */
export interface SystemView {
  binds: readonly Bind[];
  /** Path → where the link leads. */
  links: ReadonlyMap<string, string>;
  /** Path → content. */
  files: ReadonlyMap<string, Buffer>;
}

export function systemView(): SystemView {
  const binds: Bind[] = devices.map((file) => ({ path: file, access: "device" }));
  const links = new Map<string, string>();
  for (const file of [...systemDirs, ...settings]) {
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (!stats) continue;
    const real = realPath(file);
    if (stats.isSymbolicLink() && systemDirs.some((dir) => real?.startsWith(`${dir}/`)))
      links.set(file, readlinkSync(file));
    else if (real !== undefined) binds.push({ path: file, source: real, access: "read" });
  }
  const files = new Map<string, Buffer>();
  for (const file of copied) {
    const content = contentOf(file);
    if (content !== undefined) files.set(file, content);
  }
  return { binds, links, files };
}

function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

/** Undefined for a link that leads nowhere. */
function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

/**
 * Writes what is a container's own of its root directory: places to write to, accounts, links. `binds`: what will be mounted there.
 */
export function writeRoot(
  root: string,
  view: SystemView,
  user: { uid: number; gid: number },
  binds: readonly Bind[],
): void {
  for (const name of ["", "etc", "dev", "proc", "run", "var"])
    directory(path.join(root, name), 0o755);
  for (const name of ["tmp", "dev/shm"]) directory(path.join(root, name), 0o1777);
  // A mount point below a link would be made where it leads on the machine.
  if (!binds.some((bind) => bind.path.startsWith("/var/tmp/")))
    symlinkSync("/tmp", path.join(root, "var/tmp"));
  for (const [name, content] of view.files) file(root + name, content);
  for (const [file, target] of [...view.links, ...Object.entries(deviceLinks).map(inDev)]) {
    mkdirSync(path.dirname(root + file), { recursive: true, mode: 0o755 });
    symlinkSync(target, root + file);
  }
  const { uid, gid } = user;
  const own = uid === 0 ? "" : `spry:x:${uid}:${gid}::/:/bin/sh\n`;
  const unprivileged = uid === 65_534 ? "" : "nobody:x:65534:65534:nobody:/:/bin/false\n";
  file(path.join(root, "etc/passwd"), `root:x:0:0:root:/:/bin/sh\n${own}${unprivileged}`);
  file(path.join(root, "etc/group"), `root:x:0:\n${gid === 0 ? "" : `spry:x:${gid}:\n`}`);
}

const inDev = ([name, target]: [string, string]): [string, string] => [`/dev/${name}`, target];

function directory(dir: string, mode: number): void {
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, mode);
}

function file(name: string, text: string | Buffer): void {
  writeFileSync(name, text);
  chmodSync(name, 0o644);
}
