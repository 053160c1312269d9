/** What the kernel limits for each user of the machine: containers of all Pods run as the same few users. */
import { readFileSync, writeFileSync } from "node:fs";
import { type Logger, messageOf } from "@spry/kube";

/**
 * Limits of the kernel for each user, in /proc/sys, and the least that they are to be. What they count is memory of the kernel, which
 * cgroups count as the memory of the container that uses it (`__GFP_ACCOUNT`): with these figures, no container reaches them before.
 */
const least: Readonly<Record<string, number>> = {
  "fs/inotify/max_user_instances": 1_048_576,
  "fs/inotify/max_user_watches": 67_108_864,
  "fs/epoll/max_user_watches": 1_073_741_824,
  // 0: no limit. Beyond it, new pipes have room for a page or two.
  "fs/pipe-user-pages-soft": 0,
};

/** More than any program counts, and exact in JSON. */
const unlimited = Number.MAX_SAFE_INTEGER;
const capSysResource = 1n << 24n;

/**
 * Raises the machine's limits for each user, and lowers none. They stay so: another platform may rely on them. Returns what could not
 * be raised.
 */
export function raiseUserLimits(log: Logger, dir = "/proc/sys"): string[] {
  return Object.entries(least).flatMap(([name, wanted]) => {
    const file = `${dir}/${name}`;
    try {
      const present = Number(readFileSync(file, "latin1"));
      const isEnough = wanted === 0 ? present === 0 : present >= wanted;
      if (!isEnough) {
        writeFileSync(file, String(wanted));
        log.info({ limit: name, before: present, now: wanted }, "raised a limit for each user");
      }
      return [];
    } catch (error) {
      // A kernel that does not have this limit has nothing to be shared.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      log.debug({ limit: name, error: messageOf(error) }, "raising a limit failed");
      return [name.replaceAll("/", ".")];
    }
  });
}

/** The kernel compares what a user has in all containers with the limit of the process that asks: none, so that none is used up. */
export function userRlimits(): { type: string; hard: number; soft: number }[] {
  if (!mayRaise()) return [];
  const types = ["RLIMIT_NPROC", "RLIMIT_SIGPENDING", "RLIMIT_MSGQUEUE"];
  return types.map((type) => ({ type, hard: unlimited, soft: unlimited }));
}

function mayRaise(): boolean {
  const status = readFileSync("/proc/self/status", "latin1");
  const [, effective = "0"] = /^CapEff:\t([0-9a-f]+)$/m.exec(status) ?? [];
  return (BigInt(`0x${effective}`) & capSysResource) !== 0n;
}
