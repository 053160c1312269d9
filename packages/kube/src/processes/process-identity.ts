/** Distinguishes a process from a later one that was given the same number, also after the machine has started again. */
import { canIdentifyProcesses, lookAtProcess, thisBoot } from "./process-stat.ts";
import { isOthersPid, processExists, signalProcess } from "./signals.ts";

export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to the process's start (proc(5), stat field 22); absent where there is no /proc. */
  startTime?: string;
  /** During which boot that was; absent where it is unknown. */
  boot?: string;
}

/** `unknown`: there is a process of that number, and it cannot be looked at now. It is not to be taken for dead, nor signalled. */
export type Life = "alive" | "dead" | "unknown";

/** Of a process that runs. Throws when it does not, or cannot be looked at. */
export function identify(pid: number): ProcessIdentity {
  if (!canIdentifyProcesses()) return { pid };
  const found = lookAtProcess(pid);
  if (typeof found === "string") throw new Error(`process ${pid} cannot be looked at: ${found}`);
  const boot = thisBoot();
  return { pid, startTime: String(found.startTicks), ...(boot && { boot }) };
}

/**
 * What a file says, if it is the identity of a process: a number alone names none where start times are known. The first process, which
 * is never signalled, has an identity, too: in a container it may be the platform.
 */
export function readIdentity(value: unknown): ProcessIdentity | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { pid, startTime, boot } = value as Record<string, unknown>;
  if (!Number.isInteger(pid) || (pid as number) < 1) return undefined;
  const isTime = typeof startTime === "string" && /^[1-9]\d{0,18}$/.test(startTime);
  if (!isTime && (startTime !== undefined || canIdentifyProcesses())) return undefined;
  if (boot !== undefined && typeof boot !== "string") return undefined;
  return {
    pid: pid as number,
    ...(isTime && { startTime }),
    ...(boot !== undefined && { boot }),
  };
}

export function lifeOf({ pid, startTime, boot }: ProcessIdentity): Life {
  if (boot !== undefined && thisBoot() !== "" && boot !== thisBoot()) return "dead";
  if (!processExists(pid)) return "dead";
  if (startTime === undefined) return canIdentifyProcesses() ? "dead" : "alive";
  const found = lookAtProcess(pid);
  if (found === "unknown") return "unknown";
  // One that exists and has no file is hidden (`hidepid` of proc(5)), or has just ended.
  if (found === "gone") return processExists(pid) ? "unknown" : "dead";
  return String(found.startTicks) === startTime && found.state !== "Z" ? "alive" : "dead";
}

/** Signals the process if it is still the same one, and not the caller; says whether it was sent. */
export function signalIdentity(identity: ProcessIdentity, name: NodeJS.Signals): boolean {
  if (!isOthersPid(identity.pid) || lifeOf(identity) !== "alive") return false;
  return signalProcess(identity.pid, name);
}
