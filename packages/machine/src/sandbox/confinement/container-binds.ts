import { realpathSync } from "node:fs";
import path from "node:path";
import { type Mount } from "../sandbox.ts";
import { type Bind } from "./mount-table.ts";

/** Files and directories of the machine, at their own paths; what is read, at its real path, too, because links lead there. */
export function bindsOf({
  read,
  write,
}: {
  read: readonly string[];
  write: readonly string[];
}): Bind[] {
  const places = new Set(read.flatMap((file) => [file, realPath(file)]));
  return [
    ...[...places].map((file) => bindOf(file, "read")),
    ...write.map((file) => bindOf(file, "write")),
  ];
}

/** Where programs write without having asked: on the disk, where it counts as what the Pod has written. */
export function sharedScratch(podDir: string): Bind[] {
  const tmp = path.join(podDir, "tmp");
  return [
    { path: "/tmp", source: tmp, access: "write", isOptional: true },
    { path: "/dev/shm", source: path.join(podDir, "shm"), access: "write", isOptional: true },
  ];
}

/**
 * Whole volumes, also where a part is mounted: a container that writes to one may put a link in the place of that
 * part, which would be followed while it is bound.
 */
export function volumeBinds(volumes: string, mounts: readonly Mount[]): Bind[] {
  const rootOf = (source: string) => {
    const [name = "", ...below] = path.relative(volumes, source).split("/");
    return name === ".." || below.length === 0 ? source : path.join(volumes, name);
  };
  const byRoot = Map.groupBy(mounts, ({ source }) => rootOf(source));
  return [...byRoot].map(([file, parts]) => {
    const isReadOnly = parts.every(({ readOnly }) => readOnly === true);
    return bindOf(file, isReadOnly ? "read" : "write");
  });
}

function bindOf(file: string, access: Bind["access"]): Bind {
  return { path: file, source: realPath(file), access };
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
