import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { release } from "node:os";
import path from "node:path";
import { Jails } from "./jails.ts";
import { type Bind, laterMountTable, mountTable, setAside } from "./mount-table.ts";
import { filesFor, maxProcesses, startFile, startFiles } from "./start-file.ts";
import { systemView, writeRoot } from "./system-view.ts";
import { findTools, type Tools } from "./tools.ts";

/** `root`: by root's rights, each Pod as a user of its own. `user`: in user namespaces, as the platform's user. */
export type ConfinementKind = "root" | "user";

/** A container that is kept apart, as a record has it. */
export interface Confined {
  kind: ConfinementKind;
  /** Whom it runs as. */
  uid: number;
  gid: number;
  /** The directory with its root directory, and what goes with that. */
  jail: string;
}

/** Users 0x78000000 to 0x78ffffff, which no system gives to people, services or containers. */
const firstUser = 0x7800_0000;
const maxFiles = 65_536;
/** Of the helpers; programs get their own. */
const helperPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** In the jail: the container's root directory, and where the machine's tree is for a moment. */
const [rootDir, machineDir] = ["root", "machine"];

const fail = `fail() { echo "$1" >&2; exit 125; }`;
/** `ulimit -u` is `-p` in some shells. */
const goOn = `
ulimit -c 0
ulimit -n ${maxFiles} 2>/dev/null
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4" 2>/dev/null
shift 6
exec "$@"`;

/**
 * Runs as the first process of the namespaces: makes the container's root directory whole, takes the machine's tree
 * out of the mount namespace, sets limits, and goes on as the next helper.
 */
const prepare = `
${fail}
"$1" -n -i -a -T "$2/fstab" || fail "the container's file system could not be mounted"
[ -z "$3" ] || echo "$3" > /proc/sys/kernel/hostname
cd "$2" && "$5" . ${machineDir} && cd / && "$6" -n -i -l /${machineDir} ||
  fail "the machine's tree could not be taken out of the mount namespace"
${goOn}`;

/** In the jail: what a waiting container gets mounted when it is taken over. */
const laterTable = "later";
/** A socket between the agent and the helper that waits. */
export const completeFd = 5;
/** The last line of its answer; a failure's reasons are before it. */
export const completed = { done: "done", failed: "failed" };

/**
 * The same for a container that waits for its Pod. The machine's tree stays in the mount namespace, outside of the
 * container's root directory, for a helper that waits for a line with the host name (or an empty one), does the rest,
 * and answers. It ends with the agent.
 */
const prepareToWait = `
${fail}
"$1" -n -i -a -T "$2/fstab" || fail "the container's file system could not be mounted"
cd "$2" && "$5" . ${machineDir} && cd / || fail "the root directory could not be changed"
(
  exec 3>&- 4>&- >&${completeFd} 2>&1
  read -r name <&${completeFd} || exit 0
  complete() {
    "$1" -n -i -a -T /${laterTable} || return 1
    [ -z "$name" ] || echo "$name" > /proc/sys/kernel/hostname || return 1
    "$6" -n -i -l /${machineDir}
  }
  complete "$@" && echo ${completed.done} || echo ${completed.failed}
) &
exec ${completeFd}>&-
${goOn}`;

/** The user of the Pod that has this address. */
export function userOfAddress(ip: string): { uid: number; gid: number } {
  const [, b = 0, c = 0, d = 0] = ip.split(".").map(Number);
  const uid = firstUser + b * 65_536 + c * 256 + d;
  return { uid, gid: uid };
}

export interface Program {
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  hostName: string;
}

/**
 * Keeps plain processes apart with namespaces of Linux, by programs of util-linux: a root directory with nothing of
 * the machine but programs and libraries, only the container's own processes, no rights of root
 * ([adr/0014](../../../../../docs/adr/0014-hardened-processes.md)).
 */
export class Confinement {
  readonly kind: ConfinementKind;
  readonly #tools: Tools;
  readonly #system = systemView();
  readonly jails: Jails;

  constructor(kind: ConfinementKind, dataDir: string) {
    this.kind = kind;
    this.#tools = findTools();
    this.jails = new Jails(dataDir);
  }

  /** A Pod's address is its own, and so is the user that is made from it. */
  userOf(ip: string): { uid: number; gid: number } {
    if (this.kind === "user") return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    return userOfAddress(ip);
  }

  /** Makes the container's root directory, and returns the command that runs the program in it. */
  command(confined: Confined, program: Program, binds: readonly Bind[]): string[] {
    this.#makeRoot(confined, program, binds);
    return this.#chain(confined, program, prepare);
  }

  /**
   * The same for a program that waits in the sandbox of a Pod to come: `binds` is what it needs for that. It gets
   * nothing of any Pod's; descriptor `completeFd` is where `complete` is asked for.
   */
  waitingCommand(confined: Confined, program: Program, binds: readonly Bind[]): string[] {
    this.#makeRoot(confined, program, binds);
    return this.#chain(confined, program, prepareToWait);
  }

  /**
   * Prepares the jail of a waiting program for its Pod, as `as` from now on: what is to be mounted, and the
   * environment of commands. Throws when the jail cannot be moved. Returns the line for `completeFd`.
   */
  complete(
    waiting: { confined: Confined; binds: readonly Bind[] },
    as: Confined,
    program: Program,
    binds: readonly Bind[],
  ): string {
    rmSync(as.jail, { recursive: true, force: true });
    mkdirSync(path.dirname(as.jail), { recursive: true });
    // Mounts that other namespaces have in it go with it.
    renameSync(waiting.confined.jail, as.jail);
    const tmp = this.jails.tmpOf(as.jail);
    setAside(tmp);
    renameSync(this.jails.tmpOf(waiting.confined.jail), tmp);
    const root = rootOf(as);
    const seen = { root: `/${rootDir}`, machine: `/${machineDir}` };
    const mounted = this.#all(waiting.binds, {});
    const table = laterMountTable({ root, tmp, seen }, this.#all(binds, program.env), mounted);
    writeFileSync(path.join(as.jail, laterTable), table);
    this.#writeStarts(root, program.env, as);
    return `${this.kind === "root" ? program.hostName : ""}\n`;
  }

  #makeRoot(confined: Confined, { env }: Program, binds: readonly Bind[]): void {
    const { jail, uid, gid } = confined;
    rmSync(jail, { recursive: true, force: true });
    mkdirSync(jail, { recursive: true });
    const root = rootOf(confined);
    const all = this.#all(binds, env);
    writeRoot(root, this.#system, { uid, gid }, all);
    const tmp = this.jails.tmpOf(jail);
    const table = mountTable({ jail, root, tmp }, all);
    writeFileSync(path.join(jail, "fstab"), table);
    this.#writeStarts(root, env, confined);
    writeWayIn(jail);
  }

  /** With what every container sees of the machine. */
  #all(binds: readonly Bind[], env: Program["env"]): Bind[] {
    // What lies behind a link is there by its real name.
    const links = [...this.#system.links.keys()];
    const own: Bind[] = filesFor(env).map((file) => ({ path: file, access: "read" }));
    const real = [...binds, ...own].filter(
      (bind) => !links.some((link) => bind.path.startsWith(`${link}/`)),
    );
    return [...this.#system.binds, ...real];
  }

  #chain(confined: Confined, program: Program, script: string): string[] {
    const { sh, unshare, mount, pivotRoot, umount } = this.#tools;
    const isRoot = this.kind === "root";
    return [
      unshare,
      ...words(isRoot ? "" : "--user --map-current-user --keep-caps"),
      // What is unmounted on the machine must not be held here.
      ...words("--mount --pid --ipc --uts --fork --kill-child --propagation slave"),
      ...command(sh, "-c", script, "sh", mount, confined.jail, isRoot ? program.hostName : ""),
      isRoot || countsByNamespace() ? String(maxProcesses) : "",
      ...command(pivotRoot, umount),
      // A directory below the namespace's root: the kernel lets no process in a chroot make user namespaces.
      ...command(unshare, `--root=/${rootDir}`),
      ...withoutRights(confined, this.#tools),
      ...words("--pdeathsig KILL"),
      ...command(sh, startFile, "run", program.cwd, ...program.argv),
    ];
  }

  #writeStarts(root: string, env: Program["env"], confined: Confined): void {
    for (const [file, text] of Object.entries(startFiles(env)))
      this.#writeStart(root + file, text, confined);
  }

  #writeStart(file: string, text: string, { kind, uid, gid }: Confined): void {
    // It holds the environment, with its secrets. A shell may be reading an earlier one.
    const made = `${file}.new`;
    writeFileSync(made, text, { mode: 0o400 });
    chmodSync(made, 0o400);
    if (kind === "root") chownSync(made, uid, gid);
    renameSync(made, file);
  }
}

/** Whether the container's first process is in its root directory already: before, it is a helper with privileges. */
export function isInside(confined: Confined, target: number): boolean {
  try {
    const [there, own] = [statSync(`/proc/${target}/root/`), statSync(rootOf(confined))];
    return there.ino === own.ino && there.dev === own.dev;
  } catch {
    return false;
  }
}

/** The command that runs another program in a container, which has this first process. */
export function joinCommand(
  confined: Confined,
  target: number,
  { argv, cwd }: Pick<Program, "argv" | "cwd">,
): string[] {
  const tools = findTools();
  return [
    tools.nsenter,
    ...words(confined.kind === "root" ? "" : "--user --preserve-credentials"),
    `--target=${target}`,
    ...words("--mount --pid --ipc --uts --root --wd"),
    ...withoutRights(confined, tools),
    ...command(tools.sh, startFile, "exec", cwd, ...argv),
  ];
}

function withoutRights({ kind, uid, gid }: Confined, { setpriv }: Tools): string[] {
  const user = `--reuid=${uid} --regid=${gid} --clear-groups`;
  return [
    setpriv,
    ...words("--no-new-privs --inh-caps=-all --bounding-set=-all"),
    ...words(kind === "root" ? user : "--ambient-caps=-all"),
  ];
}

const words = (text: string): string[] => text.split(" ").filter(Boolean);
/** Helpers follow each other; so they do in the list. */
const command = (...argv: string[]): string[] => argv;

const rootOf = ({ jail }: Confined): string => path.join(jail, rootDir);

/** The helpers find programs and libraries at their usual paths also when the jail is the root directory. */
function writeWayIn(jail: string): void {
  for (const name of readdirSync(path.join(jail, rootDir)))
    if (name !== rootDir && name !== machineDir)
      symlinkSync(path.join(rootDir, name), path.join(jail, name));
  mkdirSync(path.join(jail, machineDir));
}

/** What the helpers see. Strays are found by `SPRY_ROOT`. */
export const helperEnvironment = (root: string): Record<string, string> => ({
  PATH: helperPath,
  SPRY_ROOT: root,
});

/** Before Linux 5.14 the limit is on all that the user runs on the machine, in whatever namespace. */
function countsByNamespace(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}
