import path from "node:path";
import { listNames, podDir, type PodRecord, podsDir, readPodRecord } from "./records.ts";
import { removeTree } from "./remove-tree.ts";
import { type PodSandbox, type RecoveredContainer, type RecoveredPod } from "./sandbox.ts";

/** How one kind of sandbox takes over what an earlier process of the platform has left. */
export interface Recovery<S extends PodSandbox> {
  /** Whether the Pod can go on; by default each can. */
  keeps?(record: PodRecord): Promise<boolean>;
  /** See `RecoveredPod`; by default none is. */
  isOutdated?(record: PodRecord): boolean;
  add(record: PodRecord): S;
  /** The container of this name, if it runs or something is known of its end. */
  adopt(sandbox: S, dir: string, name: string): RecoveredContainer | undefined;
}

/** Takes over the Pods of a data directory; what no record explains is removed. */
export async function recoverPods<S extends PodSandbox>(
  dataDir: string,
  recovery: Recovery<S>,
): Promise<RecoveredPod[]> {
  const recovered: RecoveredPod[] = [];
  for (const uid of listNames(podsDir(dataDir))) {
    const dir = podDir(dataDir, uid);
    const record = readPodRecord(dir);
    const keeps = record?.uid === uid && ((await recovery.keeps?.(record)) ?? true);
    if (!keeps) {
      await removeTree(dir);
      continue;
    }
    const sandbox = recovery.add(record);
    const containers = listNames(path.join(dir, "containers")).flatMap(
      (name) => recovery.adopt(sandbox, dir, name) ?? [],
    );
    const { namespace, name } = record;
    const isOutdated = recovery.isOutdated?.(record) ?? false;
    recovered.push({ uid, namespace, name, sandbox, containers, isOutdated });
  }
  return recovered;
}
