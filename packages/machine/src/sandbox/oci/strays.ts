import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { type Clock, type Logger } from "@spry/kube";
import { findByEnvironment, isAlive, readStat, signalProcess } from "../processes.ts";
import { listNames, podDir, podsDir } from "../records.ts";
import { Cgroups } from "./cgroups.ts";
import { type OciContext, ownerVariable } from "./runtime-process.ts";
import { readOciRecord } from "./oci-records.ts";
import { findRuntime, OciRuntime } from "./oci-runtime.ts";

/** Where the containers of a data directory are; the directory must be there, its path a real one. */
export function surroundingsOf(dataDir: string, runtime: string, clock: Clock): OciContext {
  const hash = createHash("sha256").update(dataDir).digest("hex").slice(0, 12);
  return {
    owner: dataDir,
    runtime: new OciRuntime(runtime, path.join(dataDir, "oci", "containers")),
    cgroups: new Cgroups(`spry-${hash}`, clock),
    clock,
  };
}

/** Ends runtimes that were just starting a container when the last agent died: they have no record yet. */
export async function killStrayRuntimes(dataDir: string): Promise<void> {
  const monitors = new Set<number>();
  for (const uid of listNames(podsDir(dataDir))) {
    const dir = podDir(dataDir, uid);
    for (const name of listNames(path.join(dir, "containers"))) {
      const known = readOciRecord(dir, name);
      if (known && isAlive(known.monitor)) monitors.add(known.monitor.pid);
    }
  }
  for (const { pid, value } of await findByEnvironment(`${ownerVariable}=`)) {
    if (value !== dataDir) continue;
    // Every monitor has a session of its own; a runtime below a waiting shell is in it too, and one on a
    // terminal is the child of one that is.
    const { session = 0, parent = 0 } = readStat(pid) ?? {};
    const above = readStat(parent)?.session ?? 0;
    if (!monitors.has(session) && !monitors.has(above)) signalProcess(pid, "SIGKILL");
  }
}

/** Removes every container and cgroup but those that are known. */
export async function removeStrayContainers(
  { runtime, cgroups }: OciContext,
  known: ReadonlySet<string>,
  log: Logger,
): Promise<void> {
  for (const id of new Set([...runtime.list(), ...cgroups.list()])) {
    if (known.has(id)) continue;
    log.warn({ id }, "removing container that belongs to no Pod");
    await runtime.delete(id);
    await cgroups.remove(id);
  }
  cgroups.removeUnusedParent();
}

/** For a sandbox of another kind on the same data directory: ends all containers that were left. */
export async function removeOciContainers(
  dataDir: string,
  clock: Clock,
  log: Logger,
): Promise<void> {
  if (!existsSync(path.join(dataDir, "oci", "containers"))) return;
  const real = realpathSync(dataDir);
  await removeStrayContainers(surroundingsOf(real, findRuntime() ?? "runc", clock), new Set(), log);
  // What still waits for those containers ends by itself; what was starting one does not.
  await killStrayRuntimes(real);
}
