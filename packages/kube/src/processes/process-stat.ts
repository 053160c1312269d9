/** What Linux says of a process, and what is known of it while nothing can be read. */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";

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
  /** When it started, in ticks since boot. With the pid it names one process until the machine starts again. */
  startTicks: number;
}

/** Whether this system has information about processes, so that they can be found again. */
export function canIdentifyProcesses(): boolean {
  return existsSync("/proc/self/stat");
}

/** `gone`: there is no such process. `unknown`: it cannot be read now, as without a descriptor; that is not the same. */
export function lookAtProcess(pid: number): ProcessStat | "gone" | "unknown" {
  if (!Number.isSafeInteger(pid) || pid < 1) return "gone";
  try {
    return parseStat(pid, readWithSpare(`/proc/${pid}/stat`));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ESRCH" ? "gone" : "unknown";
  }
}

/** The process, if there is one and it can be looked at. */
export function readStat(pid: number): ProcessStat | undefined {
  const found = lookAtProcess(pid);
  return typeof found === "string" ? undefined : found;
}

export function parseStat(pid: number, text: string): ProcessStat {
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

let bootId: string | undefined;

/** Changes when the machine starts again, where start times begin from 0; empty where that is unknown. */
export function thisBoot(): string {
  if (bootId === undefined) {
    try {
      bootId = readWithSpare("/proc/sys/kernel/random/boot_id").trim();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") return "";
      bootId = "";
    }
  }
  return bootId;
}

/** A descriptor kept in reserve: processes are looked at most when the machine is at its limits, and a look needs a descriptor. */
let spare: number | undefined;

function readWithSpare(file: string): string {
  spare ??= openSpare();
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (spare === undefined || (code !== "EMFILE" && code !== "ENFILE")) throw error;
    closeSync(spare);
    try {
      return readFileSync(file, "latin1");
    } finally {
      spare = openSpare();
    }
  }
}

function openSpare(): number | undefined {
  try {
    return openSync("/dev/null", "r");
  } catch {
    return undefined;
  }
}
