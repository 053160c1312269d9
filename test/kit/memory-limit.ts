import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const v1 = "/sys/fs/cgroup/memory";
const v2 = "/sys/fs/cgroup";

/** Why no control group with a limit of memory can be made here; undefined when one can. */
export const noMemoryLimits = findReason();

function findReason(): string | undefined {
  if (process.getuid?.() !== 0) return "control groups need root";
  const tree = treeOf();
  if (tree === undefined) return "there are no control groups for memory";
  const trial = path.join(tree, `spry-trial-${process.pid}`);
  try {
    mkdirSync(trial);
    const works = existsSync(path.join(trial, limitFile()));
    rmdirSync(trial);
    return works ? undefined : "control groups here have no limit of memory";
  } catch (error) {
    return `control groups cannot be made: ${(error as Error).message}`;
  }
}

function treeOf(): string | undefined {
  if (existsSync(path.join(v1, "memory.limit_in_bytes"))) return v1;
  return existsSync(path.join(v2, "cgroup.controllers")) ? v2 : undefined;
}

function limitFile(): string {
  return treeOf() === v1 ? "memory.limit_in_bytes" : "memory.max";
}

/** A control group as a container with that limit has it: what is started with its prefix is in it. */
export interface MemoryLimit {
  prefix: string[];
  /** How many of its processes the kernel has ended because memory ran out. */
  kills(): number;
  /** Ends what is left in it. */
  [Symbol.asyncDispose](): Promise<void>;
}

export function limitMemory(mebibytes: number): MemoryLimit {
  const tree = treeOf() ?? v1;
  const directory = path.join(tree, `spry-test-${process.pid}-${++count}`);
  const file = (name: string) => path.join(directory, name);
  mkdirSync(directory);
  writeFileSync(file(limitFile()), String(mebibytes * 1024 * 1024));
  const join = `echo $$ > ${file("cgroup.procs")}; exec "$0" "$@"`;
  const processes = () => readFileSync(file("cgroup.procs"), "utf8").match(/\d+/g) ?? [];
  const events = tree === v1 ? "memory.oom_control" : "memory.events";
  return {
    prefix: ["/bin/sh", "-c", join],
    kills: () => Number(/^oom_kill (\d+)/m.exec(readFileSync(file(events), "utf8"))?.[1]),
    async [Symbol.asyncDispose]() {
      for (;;) {
        for (const pid of processes()) process.kill(Number(pid), "SIGKILL");
        try {
          return rmdirSync(directory);
        } catch {
          // The kernel takes a moment to let go of what has ended.
          await pause(20);
        }
      }
    },
  };
}

let count = 0;
