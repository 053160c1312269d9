import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import path from "node:path";
import { isOthersPid, thisBoot } from "@spry/kube";
import { type Confined } from "./confinement/confinement.ts";
import { type PodUser } from "./confinement/pod-users.ts";
import { type PodIdentity } from "./sandbox.ts";

/**
 * What is kept on disk of Pods and their processes, so that the next agent finds them:
 *
 *     <dataDir>/pods/<uid>/pod.json                       PodRecord
 *     <dataDir>/pods/<uid>/containers/<name>/process.json ProcessRecord
 *     <dataDir>/pods/<uid>/containers/<name>/exit-code    written by the process's shell, if it has one
 */
export interface PodRecord extends PodIdentity {
  ip: string;
  /** `own`: a network of its own, which the address belongs to. Otherwise it uses the machine's. */
  network?: "own" | undefined;
}

export interface ProcessRecord {
  container: string;
  run: number;
  id: string;
  /** Also the process group and the session. */
  pid: number;
  startTicks: number;
  /** During which boot of the machine: after it, another process can have the same number and start. */
  boot?: string | undefined;
  /** Milliseconds since the epoch. */
  startedAt: number;
  cwd: string;
  env: Record<string, string>;
  /** How it is kept apart; nothing where it is not. */
  confined?: Confined | undefined;
  /** Whom it runs as, where that is all that keeps it apart. */
  user?: PodUser | undefined;
  /** Of a process that had waited for its Pod. */
  warm?: WarmOrigin | undefined;
}

export interface WarmOrigin {
  /** In place of the Pod's uid in what its helpers were started with. */
  id: string;
  /** Digest of the runtime that it runs. */
  runtime: string;
  /** CPU time before it had its Pod, in clock ticks. */
  ticksBefore: number;
}

export const podsDir = (dataDir: string): string => path.join(dataDir, "pods");
export const podDir = (dataDir: string, uid: string): string => path.join(podsDir(dataDir), uid);
export const podFile = (dir: string): string => path.join(dir, "pod.json");
export const containerDir = (dir: string, name: string): string =>
  path.join(dir, "containers", name);
export const processFile = (dir: string, name: string): string =>
  path.join(containerDir(dir, name), "process.json");
export const exitFile = (dir: string, name: string): string =>
  path.join(containerDir(dir, name), "exit-code");

/** Readers see the old content or the new one, never half of it. */
export function writeRecord(file: string, record: PodRecord | ProcessRecord): void {
  // Environments hold secrets.
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export function readRecord(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // Not there, or cut off by a crash of the machine: as good as not there.
    return undefined;
  }
}

/** Of a Pod; undefined where it is none. Its address is also its user, whose processes are ended with it. */
export function readPodRecord(dir: string): PodRecord | undefined {
  const record = readRecord(podFile(dir)) as Partial<PodRecord> | null | undefined;
  const { uid, namespace, name, ip } = record ?? {};
  const isRecord = [uid, namespace, name].every((each) => typeof each === "string");
  return isRecord && isIPv4(ip ?? "") ? (record as PodRecord) : undefined;
}

/** Of a container; undefined where it is none. A process that it cannot name, or of an earlier boot, has the number 0. */
export function readProcessRecord(file: string): ProcessRecord | undefined {
  const record = readRecord(file) as Partial<ProcessRecord> | null | undefined;
  const { container, run, id, startedAt, cwd, env } = record ?? {};
  const isRecord =
    [container, id, cwd].every((each) => typeof each === "string") &&
    [run, startedAt].every((each) => typeof each === "number") &&
    typeof env === "object" &&
    env !== null;
  if (!isRecord) return undefined;
  return { ...(record as ProcessRecord), ...knownProcess(record) };
}

/** What a record says of a process, if that can still run. */
export function knownProcess(record: unknown): { pid: number; startTicks: number } {
  const { pid, startTicks, boot } = (record ?? {}) as Record<string, unknown>;
  const isKnown =
    isOthersPid(pid) &&
    Number.isSafeInteger(startTicks) &&
    (boot === undefined || boot === thisBoot());
  return isKnown ? { pid, startTicks: startTicks as number } : { pid: 0, startTicks: 0 };
}

export function listNames(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
