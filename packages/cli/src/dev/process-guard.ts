/**
 * Ends the Function's processes when `spry dev` itself was killed, which leaves it no time to do so. A shell reads which processes there
 * are; the end of its input is the sign that `spry dev` is gone.
 */
import { type Writable } from "node:stream";
import { tryProgram } from "@spry/kube";

/** `$1`: the directory of this `spry dev`, `HOME` of all that its processes have started. */
const script = `
  groups=" "
  while read -r what group; do
    case $what in
      add) groups="$groups$group " ;;
      remove) groups="\${groups%% $group *} \${groups#* $group }" ;;
      end) exit ;;
    esac
  done
  for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
  for file in /proc/[0-9]*/environ; do
    grep -zqxF "HOME=$1" "$file" 2>/dev/null || continue
    process=\${file#/proc/}
    kill -KILL "\${process%/environ}" 2>/dev/null
  done
  rm -rf -- "$1"`;

export class ProcessGuard {
  /** Undefined if the machine has no shell; `spry dev` then works without a guard. */
  readonly #input: Writable | undefined;

  constructor(scratch: string) {
    // A session of its own: Ctrl-C and the end of the terminal are for `spry dev`.
    const shell = tryProgram("/bin/sh", ["-c", script, "sh", scratch], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    });
    if ("failure" in shell) return;
    shell.unref();
    const input: (Writable & { unref?: () => void }) | null = shell.stdin;
    input?.on("error", () => {});
    input?.unref?.();
    this.#input = input ?? undefined;
  }

  /** A process that leads a group of its own. */
  add(pid: number): void {
    this.#input?.write(`add ${pid}\n`);
  }

  remove(pid: number): void {
    this.#input?.write(`remove ${pid}\n`);
  }

  /** All have ended. */
  close(): void {
    this.#input?.end("end\n");
  }
}
