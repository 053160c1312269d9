import { readdirSync, readFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";

/** One process as Linux's `/proc/<pid>/stat` describes it (proc_pid_stat(5)). */
export interface ProcessStat {
  pid: number;
  /** `Z`: ended, but not yet waited for. */
  state: string;
  parent: number;
  group: number;
  session: number;
  /** CPU time of the process and of its ended children, in clock ticks. */
  cpuTicks: number;
  /** When it started, in ticks since boot. With the pid it names one process for ever. */
  startTicks: number;
}

/** `sysconf(_SC_CLK_TCK)`: 100 on every Linux architecture. */
export const ticksPerSecond = 100;

export function isAlive(process: { pid: number; startTicks: number }): boolean {
  const stat = readStat(process.pid);
  return stat !== undefined && stat.startTicks === process.startTicks && stat.state !== "Z";
}

export function readStat(pid: number): ProcessStat | undefined {
  try {
    return parseStat(pid, readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return undefined;
  }
}

/** Every process that can be seen; empty where there is no `/proc`. */
export async function listProcesses(): Promise<ProcessStat[]> {
  const found = await Promise.all(
    (await pids()).map(async (pid) => {
      try {
        return parseStat(pid, await readFile(`/proc/${pid}/stat`, "latin1"));
      } catch {
        return undefined;
      }
    }),
  );
  return found.filter((each) => each !== undefined);
}

/** Processes whose environment has a variable that starts with this text. */
export async function findByEnvironment(prefix: string): Promise<{ pid: number; value: string }[]> {
  const found = await Promise.all(
    (await pids()).map(async (pid) => {
      if (pid === process.pid) return [];
      try {
        const environment = await readFile(`/proc/${pid}/environ`, "utf8");
        const value = environment.split("\0").find((entry) => entry.startsWith(prefix));
        return value === undefined ? [] : [{ pid, value: value.slice(prefix.length) }];
      } catch {
        // Ended meanwhile, or another user's.
        return [];
      }
    }),
  );
  return found.flat();
}

/** Processes of a user, by the one that they have now. */
export async function findByUser(uid: number): Promise<number[]> {
  const found = await Promise.all(
    (await pids()).map(async (pid) => {
      const owner = await stat(`/proc/${pid}`).catch(() => undefined);
      return owner?.uid === uid ? [pid] : [];
    }),
  );
  return found.flat();
}

/** The number that a process has in the innermost PID namespace it is in; undefined where it is in none but ours. */
export function innerPid(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const [, ...inner] = (/^NSpid:\t(.*)$/m.exec(status)?.[1] ?? "").split("\t").map(Number);
    return inner.at(-1);
  } catch {
    return undefined;
  }
}

/** Resident memory in bytes. */
export async function readMemory(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, "latin1");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Signals a whole process group; one that has ended already is not an error. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  // 0 and 1 would mean our own group, and all processes.
  if (group > 1) signalProcess(-group, signal);
}

/** Signals the group that a process leads, or led until it ended; not one that has only got its number since. */
export function signalGroupOf(
  { pid, startTicks }: { pid: number; startTicks: number },
  signal: NodeJS.Signals,
): void {
  // While a group has a number no process gets it: another process of that number means that the group is gone.
  const now = readStat(pid);
  if (!now || startTicks === 0 || now.startTicks === startTicks) signalGroup(pid, signal);
}

/** A process that has ended already, or whose number another user's process has by now, is not an error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function parseStat(pid: number, text: string): ProcessStat {
  // The name is in parentheses and may itself contain any of them.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  return {
    pid,
    state: fields[0] ?? "",
    parent: field(4),
    group: field(5),
    session: field(6),
    cpuTicks: field(14) + field(15) + field(16) + field(17),
    startTicks: field(22),
  };
}

async function pids(): Promise<number[]> {
  try {
    return (await readdir("/proc")).flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
  } catch {
    return [];
  }
}

/** Whether this system has information about processes, so that they can be found again. */
export function canIdentifyProcesses(): boolean {
  try {
    return readdirSync("/proc/self").includes("stat");
  } catch {
    return false;
  }
}
