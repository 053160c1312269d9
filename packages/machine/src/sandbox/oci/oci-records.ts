import { renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { containerDir, readRecord } from "../records.ts";

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
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export function readOciRecord(podDir: string, container: string): OciRecord | undefined {
  return readRecord(ociFile(podDir, container)) as OciRecord | undefined;
}
