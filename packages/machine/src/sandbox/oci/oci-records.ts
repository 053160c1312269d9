import { renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { thisBoot } from "@spry/kube";
import { containerDir, knownProcess, readRecord } from "../records.ts";

/**
 * A container as the next agent needs to know it: `<dataDir>/pods/<uid>/containers/<name>/oci.json`. Next to it is
 * `bundle/`, which the runtime runs: `config.json`, the mount point `rootfs/`, and the overlay's `upper/` and
 * `work/`.
 */
export interface OciRecord {
  container: string;
  run: number;
  /** The runtime's name for it. */
  id: string;
  /** The container's first process, as the host sees it. */
  pid: number;
  startTicks: number;
  /** During which boot of the machine: after it, other processes can have the same numbers and starts. */
  boot?: string | undefined;
  /** The runtime, or the shell around it, that waits for the container's end. */
  monitor: { pid: number; startTicks: number };
  /** Milliseconds since the epoch. */
  startedAt: number;
  /** The limit in cores that it has once it has started, if it had another one before. */
  cpuLimit?: number | undefined;
  /** CPU time, in nanoseconds, of a process that had waited for its Pod, before it had it. */
  cpuBefore?: number | undefined;
}

export const ociFile = (podDir: string, container: string): string =>
  path.join(containerDir(podDir, container), "oci.json");
export const bundleDir = (podDir: string, container: string): string =>
  path.join(containerDir(podDir, container), "bundle");

export function writeOciRecord(podDir: string, record: OciRecord): void {
  const file = ociFile(podDir, record.container);
  writeFileSync(`${file}.new`, JSON.stringify({ ...record, boot: thisBoot() }), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Undefined where there is none. A process that it cannot name, or of an earlier boot, has the number 0. */
export function readOciRecord(podDir: string, container: string): OciRecord | undefined {
  const record = readRecord(ociFile(podDir, container)) as Partial<OciRecord> | null | undefined;
  const { id, run, startedAt, boot } = record ?? {};
  const isRecord =
    record?.container === container &&
    /^[0-9a-f]{64}$/.test(id ?? "") &&
    [run, startedAt].every((each) => typeof each === "number");
  if (!isRecord) return undefined;
  const monitor = knownProcess({ ...record.monitor, boot });
  return { ...(record as OciRecord), ...knownProcess(record), monitor };
}
