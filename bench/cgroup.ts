import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pause } from "../test/support/platform.ts";

const v1 = "/sys/fs/cgroup/cpu";
const v2 = "/sys/fs/cgroup";
const periodMicroseconds = 100_000;

/** A control group with a CPU limit: the prefix of a command that runs in it. */
export interface CpuLimit {
  prefix: string[];
  remove(): Promise<void>;
}

/** Why there can be none; undefined when there can. */
export function noCpuLimits(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root, to make control groups";
  return root() ? undefined : "there is no control group for CPU here";
}

function root(): string | undefined {
  if (existsSync(path.join(v1, "cpu.cfs_quota_us"))) return v1;
  return existsSync(path.join(v2, "cgroup.subtree_control")) ? v2 : undefined;
}

/** As a container with that limit has it: thousandths of a core, per period of 100 ms. */
export function limitCpu(millicores: number): CpuLimit {
  const directory = path.join(root() ?? v1, `spry-bench-${process.pid}-${millicores}`);
  mkdirSync(directory, { recursive: true });
  const quota = (periodMicroseconds * millicores) / 1000;
  if (directory.startsWith(v1)) {
    writeFileSync(path.join(directory, "cpu.cfs_period_us"), String(periodMicroseconds));
    writeFileSync(path.join(directory, "cpu.cfs_quota_us"), String(quota));
  } else writeFileSync(path.join(directory, "cpu.max"), `${quota} ${periodMicroseconds}`);
  const join = `echo $$ > ${path.join(directory, "cgroup.procs")}; exec "$0" "$@"`;
  const remove = async () => {
    // What watches the event loop sleeps on; and the kernel takes a moment to let go of what has ended.
    const processes = readFileSync(path.join(directory, "cgroup.procs"), "utf8").match(/\d+/g);
    for (const pid of processes ?? []) process.kill(Number(pid), "SIGKILL");
    for (let attempt = 0; attempt < 50; attempt++) {
      try {
        return rmdirSync(directory);
      } catch {
        await pause(20);
      }
    }
  };
  return { prefix: ["/bin/sh", "-c", join], remove };
}
