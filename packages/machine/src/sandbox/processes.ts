import { readFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import {
  lookAtProcess,
  mapInTurn,
  parseStat,
  processExists,
  type ProcessStat,
  signalGroup,
  signalProcess,
  sleep,
  systemClock,
} from "@spry/kube";

export { canIdentifyProcesses, type ProcessStat, readStat } from "@spry/kube";
export { signalGroup, signalProcess } from "@spry/kube";

/** `sysconf(_SC_CLK_TCK)`: 100 on every Linux architecture. */
export const ticksPerSecond = 100;

/** How many files of `/proc` one look at all processes has open at a time. */
const filesAtOnce = 8;
/** How long a look waits for a descriptor, where this process has none left. */
const attempts = 20;
const pauseMs = 250;

interface Known {
  pid: number;
  startTicks: number;
}

/** Whether a process, this one too, may still run. One that cannot be looked at now, for want of a descriptor, counts as alive. */
export function isAlive(process: Known): boolean {
  return lifeOf(process) !== "dead";
}

function lifeOf({ pid, startTicks }: Known): "alive" | "dead" | "unknown" {
  if (startTicks <= 0) return "dead";
  const found = lookAtProcess(pid);
  if (found === "unknown") return processExists(pid) ? "unknown" : "dead";
  if (found === "gone" || found.state === "Z") return "dead";
  return found.startTicks === startTicks ? "alive" : "dead";
}

/** Signals a process that is known to be still the same; says whether it was sent. */
export function signalIfSame(process: Known, signal: NodeJS.Signals): boolean {
  return lifeOf(process) === "alive" && signalProcess(process.pid, signal);
}

/** One look at all processes, for everything that is asked of it before it begins. */
class Scan<T> {
  readonly #read: (pid: number) => Promise<T | undefined>;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<T[]> | undefined;

  constructor(read: (pid: number) => Promise<T | undefined>) {
    this.#read = read;
  }

  /** Begins when the one before is over: what was asked meanwhile is answered by the same look. */
  run(): Promise<T[]> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#look();
    });
    this.#running = this.#next.catch(() => {});
    return this.#next;
  }

  async #look(): Promise<T[]> {
    for (let left = attempts; ; left--) {
      try {
        const found = await mapInTurn(await pids(), filesAtOnce, this.#read);
        return found.filter((each) => each !== undefined);
      } catch (error) {
        if (left <= 1 || !isOutOfDescriptors(error)) throw error;
        await sleep(systemClock, pauseMs);
      }
    }
  }
}

const allStats = new Scan(async (pid) => {
  const text = await contentOf(`/proc/${pid}/stat`, "latin1");
  return text === undefined ? undefined : parseStat(pid, text);
});

/** By them processes are found again: only these variables are kept of an environment. */
const markers = ["SPRY_ROOT=", "SPRY_OCI=", "SPRY_COUNTS_TOKEN_FILE="];

const allMarkers = new Scan(async (pid) => {
  if (pid === process.pid) return undefined;
  const environment = await contentOf(`/proc/${pid}/environ`, "utf8");
  const found = environment
    ?.split("\0")
    .filter((entry) => markers.some((each) => entry.startsWith(each)));
  return found && found.length > 0 ? { pid, variables: found } : undefined;
});

const allOwners = new Scan(async (pid) => {
  const owner = await stat(`/proc/${pid}`).catch(() => undefined);
  return owner && { pid, uid: owner.uid };
});

/** Every process that can be seen; empty where there is no `/proc`. Throws when this process has no descriptor left for the look. */
export function listProcesses(): Promise<ProcessStat[]> {
  return allStats.run();
}

/**
 * Processes whose environment has a variable that starts with this text, which begins with one of `markers`. Throws when this process
 * has no descriptor left for the look: that nothing was found would mean that nothing runs.
 */
export async function findByEnvironment(prefix: string): Promise<{ pid: number; value: string }[]> {
  return (await allMarkers.run()).flatMap(({ pid, variables }) => {
    const value = variables.find((entry) => entry.startsWith(prefix));
    return value === undefined ? [] : [{ pid, value: value.slice(prefix.length) }];
  });
}

/** Processes of a user, by the one that they have now. */
export async function findByUser(uid: number): Promise<number[]> {
  return (await allOwners.run()).flatMap((each) => (each.uid === uid ? [each.pid] : []));
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

/** Resident memory in bytes, of each of these processes; 0 of one that has ended. */
export function readMemory(all: readonly number[]): Promise<number[]> {
  return mapInTurn(all, filesAtOnce, async (pid) => {
    const status = await contentOf(`/proc/${pid}/status`, "latin1");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status ?? "")?.[1] ?? 0) * 1024;
  });
}

/** Signals the group that a process leads, or led until it ended; not one that has only got its number since. */
export function signalGroupOf({ pid, startTicks }: Known, signal: NodeJS.Signals): void {
  // While a group has a number no process gets it: another process of that number means that the group is gone.
  const now = lookAtProcess(pid);
  if (now === "unknown") return;
  if (now === "gone" || startTicks === 0 || now.startTicks === startTicks) signalGroup(pid, signal);
}

async function pids(): Promise<number[]> {
  try {
    return (await readdir("/proc")).flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return [];
  }
}

/** Undefined of one that has ended meanwhile, or is another user's. */
async function contentOf(file: string, encoding: "latin1" | "utf8"): Promise<string | undefined> {
  try {
    return await readFile(file, encoding);
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return undefined;
  }
}

function isOutOfDescriptors(error: unknown): boolean {
  return ["EMFILE", "ENFILE"].includes((error as NodeJS.ErrnoException).code ?? "");
}
