/** Processes that outlive the program that started them, told from later ones that were given the same pid. */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** The kernel may have a whole tree of processes to end before, and a disk to wait for. */
const killedWithinMs = 30_000;

export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to its start (proc(5), stat field 22); empty where there is no /proc. */
  startTime: string;
}

export interface BackgroundProcess extends ProcessIdentity {
  name: string;
  log: string;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, startTime: statOf(pid)?.startTime ?? "" };
}

/** Starts it in a session of its own, so that a Ctrl-C in our terminal does not reach it. */
export function startInBackground(
  name: string,
  file: string,
  args: string[],
  options: { cwd: string; log: string },
): BackgroundProcess {
  const log = openSync(options.log, "a", 0o600);
  try {
    // A clean environment: proxies, Go's debug switches and the like must not change how a cluster behaves.
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { PATH: process.env["PATH"], HOME: options.cwd },
      stdio: ["ignore", log, log],
      detached: true,
    });
    child.on("error", () => {});
    child.unref();
    const { pid } = child;
    if (pid === undefined) throw new Error(`starting ${name}: ${file} could not be run`);
    return { name, ...identify(pid), log: options.log };
  } finally {
    closeSync(log);
  }
}

export function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  if (startTime === "") return true;
  const stat = statOf(pid);
  return stat?.startTime === startTime && stat.state !== "Z";
}

/** SIGTERM, and SIGKILL for what is still there after the grace period; resolves when it is gone. */
export async function endProcess(one: BackgroundProcess, graceMs: number): Promise<void> {
  send(one, "SIGTERM");
  if (await isGoneWithin(one, graceMs)) return;
  send(one, "SIGKILL");
  if (!(await isGoneWithin(one, killedWithinMs))) {
    throw new Error(`ending ${one.name}: process ${one.pid} is still there after SIGKILL`);
  }
}

function send(one: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(one)) return;
  try {
    process.kill(one.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function isGoneWithin(one: BackgroundProcess, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (isRunning(one)) {
    if (performance.now() > deadline) return false;
    await pause(20);
  }
  return true;
}

/** The last lines it wrote: what a failed start has to say for itself. */
export function lastLines({ log }: BackgroundProcess, count = 15): string {
  try {
    return readFileSync(log, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "";
  }
}

/** Resident memory in MiB and processor time in seconds, where /proc tells. */
export function usageOf({ pid }: ProcessIdentity): { memory: number; cpu: number } | undefined {
  const stat = statOf(pid);
  return stat && { memory: Math.round((stat.pages * 4096) / 2 ** 20), cpu: stat.ticks / 100 };
}

function statOf(
  pid: number,
): { state: string; startTime: string; ticks: number; pages: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command, in parentheses, may itself hold spaces and parentheses; what follows starts at field 3.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const field = (number: number) => fields[number - 3] ?? "";
    const ticks = Number(field(14)) + Number(field(15));
    return { state: field(3), startTime: field(22), ticks, pages: Number(field(24)) };
  } catch {
    return undefined;
  }
}
