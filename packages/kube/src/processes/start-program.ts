/** Starts programs, so that one that could not be started is an error with its cause, and never a process without a number. */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { canIdentifyProcesses, readStat } from "./process-stat.ts";

export type StartedProgram = ChildProcess & {
  readonly pid: number;
  /** With the number it names this process (`ProcessStat`); 0 where the system does not report it. */
  readonly startTicks: number;
};

const causes: Record<string, string> = {
  EAGAIN: "the limit of processes is reached (of this user, or of this machine)",
  EMFILE: "the limit of open files of the program that starts it is reached",
  ENFILE: "the limit of open files of this machine is reached",
  ENOMEM: "the machine has no memory left for another process",
  E2BIG: "its arguments and its environment are longer than this machine allows together",
};
/** Those that pass: another attempt may succeed. */
const passing = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

/** A program that was not started. */
export class NotStarted extends Error {
  override readonly name = "NotStarted";
  /** As of the system call: `ENOENT`, `EAGAIN`, … */
  readonly code: string;

  constructor(program: string, cause: unknown) {
    const { code = "", message } = cause as NodeJS.ErrnoException;
    super(`${program} could not be started: ${causes[code] ?? message}`, { cause });
    this.code = code;
  }

  /** Whether it is for a limit that is reached now: the same may work later. */
  get isPassing(): boolean {
    return passing.has(this.code);
  }
}

/** What a limit is called that an error of the system is for; undefined for any other error. */
export function limitReached(error: unknown): string | undefined {
  return causes[(error as NodeJS.ErrnoException | undefined)?.code ?? ""];
}

/** As `startProgram`, without waiting: the program runs, or a promise says why it does not. */
export function tryProgram(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
): StartedProgram | { failure: Promise<NotStarted> } {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const failed = (error: unknown) => new NotStarted(name, error);
  let child: ChildProcess;
  try {
    child = spawn(file, args, options);
  } catch (error) {
    return { failure: Promise.resolve(failed(error)) };
  }
  const { pid } = child;
  if (pid === undefined)
    return {
      failure: new Promise((resolve) => child.once("error", (error) => resolve(failed(error)))),
    };
  // It is not waited for before this returns: its number is its own, even if it has ended.
  const startTicks = readStat(pid)?.startTicks ?? 0;
  if (startTicks > 0 || !canIdentifyProcesses())
    return Object.assign(child, { startTicks }) as StartedProgram;
  child.on("error", () => {}).kill("SIGKILL");
  return { failure: Promise.resolve(failed({ code: "EMFILE" })) };
}

/** Starts a program as `spawn` does; resolves when it is known to run. Rejects with `NotStarted`. */
export async function startProgram(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<StartedProgram> {
  const started = tryProgram(file, args, options);
  if ("failure" in started) throw await started.failure;
  return started;
}
