import { readFileSync } from "node:fs";

/** For what the kernel needs of the container's memory, and V8 beyond the heap. */
const reserveBytes = 12 * 1024 * 1024;
/** Version 1 of control groups shows this number or a larger one if no limit is set. */
const noLimit = 2 ** 60;

/** Bytes until the control group's limit ends the process (cgroups(7)); infinite without one. `root` is where the system's files are. */
export function memoryLeft(root = ""): number {
  const limit = memoryLimitOfGroup(root);
  if (limit === Infinity) return Infinity;
  const { directory, files } = (group ??= findGroup(root));
  let used = Number(read(`${directory}/${files.usage}`)) || 0;
  // Copies of files, which the kernel drops when there is nothing else.
  for (const [, bytes] of (read(`${directory}/memory.stat`) ?? "").matchAll(files.caches))
    used -= Number(bytes);
  return limit - used - reserveBytes;
}

/** The control group's limit in bytes; infinite without one. */
export function memoryLimitOfGroup(root = ""): number {
  const { directory, files } = (group ??= findGroup(root));
  const limit = Number(read(`${directory}/${files.limit}`));
  return limit > 0 && limit < noLimit ? limit : Infinity;
}

/** What there is for values of JavaScript: bytes until V8 ends the process, or the control group's limit does. */
export function memoryForValues(): { left: number; used: number } {
  const {
    heap_size_limit: limit,
    used_heap_size: used,
    total_heap_size: total,
  } = process.getBuiltinModule("node:v8").getHeapStatistics();
  // The heap has more than it uses: the system's memory is not asked for that.
  return { left: Math.min(limit - used, memoryLeft() + total - used), used };
}

/** Lets go of what is no longer used, which else waits until V8 finds it worth while. */
export function collectGarbage(): void {
  if (!collect) {
    process.getBuiltinModule("node:v8").setFlagsFromString("--expose-gc");
    collect = process.getBuiltinModule("node:vm").runInNewContext("gc") as typeof collect & {};
  }
  // Also what V8 keeps for the next values, and does not give back to the system.
  collect({ type: "major", flavor: "last-resort", execution: "sync" });
}

let collect: ((options: Record<string, string>) => void) | undefined;
let group: Group | undefined;

const unified = {
  limit: "memory.max",
  usage: "memory.current",
  caches: /^(?:in)?active_file (\d+)$/gm,
};
const version1 = {
  limit: "memory.limit_in_bytes",
  usage: "memory.usage_in_bytes",
  caches: /^total_(?:in)?active_file (\d+)$/gm,
};

interface Group {
  directory: string;
  files: typeof unified;
}

/** A container mostly sees its own group as the root of all, whatever the group's name is outside. */
function findGroup(root: string): Group {
  const own = read(`${root}/proc/self/cgroup`) ?? "";
  const [, path = ""] = /^0::(.*)$/m.exec(own) ?? [];
  const [, old = ""] = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m.exec(own) ?? [];
  const tree = `${root}/sys/fs/cgroup`;
  const candidates: Group[] = [
    { directory: `${tree}/memory${old}`, files: version1 },
    { directory: `${tree}/memory`, files: version1 },
    { directory: `${tree}${path}`, files: unified },
    { directory: tree, files: unified },
  ];
  const found = candidates.find(({ directory, files }) => read(`${directory}/${files.limit}`));
  return found ?? { directory: tree, files: unified };
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return undefined;
  }
}
