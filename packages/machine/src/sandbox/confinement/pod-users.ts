import { execFile } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { podsDir } from "../records.ts";
import { helperEnvironment, userOfAddress } from "./confinement.ts";
import { startFile, startFiles } from "./start-file.ts";
import { findTool } from "./tools.ts";

/** Whom a container's program runs as, where that is all that keeps it apart. As a record has it. */
export interface PodUser {
  uid: number;
  gid: number;
  /** Of its image, so that it can read that. */
  groups: number[];
  /** Has the script that sets its environment. */
  dir: string;
}

/** Groups of images: like the users of Pods in a range that no system gives to people or services. */
const firstImageGroup = 0x7900_0000;
const timeoutMs = 10_000;

const check = `
[ ! -r "$1" ] || { echo "a Pod could read what is another's"; exit 1; }
[ -x "$2" ] || { echo "other users than root cannot run $2"; exit 1; }
[ -r "$3" ] || { echo "other users than root cannot reach the data directory"; exit 1; }
while read -r name value; do
  case "$name $value" in
    "CapEff: 0000000000000000" | "NoNewPrivs: 1") found="$found+";;
  esac
done < /proc/self/status
[ "$found" = "++" ] || { echo "it keeps privileges"; exit 1; }`;

/**
 * Root that may not make namespaces (CAP_SYS_ADMIN), as in most containers, can still change users: each Pod gets one of
 * its own, without rights, whose files the other Pods cannot read. Processes, network and what is readable for everybody on
 * the machine stay visible.
 */
export class PodUsers {
  readonly #setpriv = findTool("setpriv");
  readonly #images: string;

  private constructor(dataDir: string) {
    this.#images = path.join(dataDir, "images");
    // Passed through by every Pod's user. All else that the platform keeps is in directories of its own, closed to others.
    mkdirSync(podsDir(dataDir), { recursive: true, mode: 0o711 });
    for (const dir of [path.dirname(dataDir), dataDir, podsDir(dataDir)]) letThrough(dir);
  }

  /** Tries it; throws, saying in a clause what is missing. */
  static async open(dataDir: string): Promise<PodUsers> {
    const users = new PodUsers(dataDir);
    const dir = mkdtempSync(path.join(dataDir, "trial-"));
    try {
      chmodSync(dir, 0o711);
      const [secret, open] = [path.join(dir, "secret"), path.join(dir, "open")];
      writeFileSync(secret, "", { mode: 0o600 });
      writeFileSync(open, "");
      chmodSync(open, 0o644);
      const user = users.userOf("127.0.0.1", dir, []);
      const argv = ["/bin/sh", "-c", check, "sh", secret, process.execPath, open];
      const [file = "", ...args] = users.command(user, { argv, env: {}, cwd: "/" });
      const options = { cwd: "/", env: helperEnvironment(dir), timeout: timeoutMs };
      await promisify(execFile)(file, args, options).catch(
        ({ stdout, stderr }: { stdout: string; stderr: string }) => {
          throw new Error(`${stderr}${stdout}`.trim().split("\n")[0] || "it failed");
        },
      );
      return users;
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }

  userOf(ip: string, dir: string, groups: number[]): PodUser {
    return { ...userOfAddress(ip), groups, dir };
  }

  /** Writes what sets the environment, and returns the command that runs the program. */
  command(
    user: PodUser,
    program: { argv: readonly string[]; env: Readonly<Record<string, string>>; cwd: string },
  ): string[] {
    for (const [file, text] of Object.entries(startFiles(program.env, user.dir))) {
      rmSync(file, { force: true });
      // It holds the environment, with its secrets.
      writeFileSync(file, text, { mode: 0o400 });
      chownSync(file, user.uid, user.gid);
    }
    return userCommand(user, program, this.#setpriv);
  }

  /** Lets only the user's own group through a directory of its Pod. */
  close(dir: string, { gid }: { gid: number }): void {
    chownSync(dir, 0, gid);
    chmodSync(dir, 0o710);
  }

  /** The group that may read an unpacked image; Pods that do not run it may not. 0 for what is not among the images. */
  groupOf(rootDir: string): number {
    const image = path.dirname(rootDir);
    if (path.dirname(image) !== this.#images) return 0;
    const known = statSync(image).gid;
    const gid = known >= firstImageGroup ? known : this.#nextGroup();
    for (const name of readdirSync(this.#images).filter((each) => each.startsWith("base-")))
      // Linked into images; other users must not read them.
      chmodSync(path.join(this.#images, name), 0o700);
    chmodSync(this.#images, 0o711);
    chownSync(image, 0, gid);
    chmodSync(image, 0o750);
    return gid;
  }

  #nextGroup(): number {
    const all = readdirSync(this.#images).map(
      (name) => statSync(path.join(this.#images, name)).gid,
    );
    return Math.max(firstImageGroup, ...all) + 1;
  }
}

/** The command that runs a program with the environment that has been written for the container. */
export function userCommand(
  { uid, gid, groups, dir }: PodUser,
  { argv, cwd }: { argv: readonly string[]; cwd: string },
  setpriv: string = findTool("setpriv"),
): string[] {
  return [
    setpriv,
    "--no-new-privs",
    "--inh-caps=-all",
    "--bounding-set=-all",
    `--reuid=${uid}`,
    `--regid=${gid}`,
    groups.length === 0 ? "--clear-groups" : `--groups=${groups.join()}`,
    "/bin/sh",
    dir + startFile,
    "exec",
    cwd,
    ...argv,
  ];
}

function letThrough(dir: string): void {
  const { mode, uid } = statSync(dir);
  if (uid === process.getuid?.()) chmodSync(dir, (mode & 0o7777) | 0o011);
}
