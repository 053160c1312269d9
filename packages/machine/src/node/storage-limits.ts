import path from "node:path";
import { formatQuantity, parseQuantity, type Pod, quantityValue } from "@spry/kube";
import { directoryBytes, directorySize } from "./disk-space.ts";
import { type PodSandbox } from "../sandbox/sandbox.ts";
import { volumeDir } from "./volumes.ts";

/** What a Pod that sets no limit may write: logs, volumes of type emptyDir, scratch and changes of its root directory. */
export const defaultStorageLimit = 4 * 1024 ** 3;
const resource = "ephemeral-storage";

/** Where a Pod's containers have written. */
export type WrittenPlaces = Pick<PodSandbox, "dir" | "elsewhere">;

/**
 * Why a Pod exceeds its limits of disk space, in the words of the kubelet (pkg/kubelet/eviction,
 * `localStorageEviction`); undefined when it does not.
 */
export async function exceededStorage(
  pod: Pod,
  { dir, elsewhere = [] }: WrittenPlaces,
): Promise<string | undefined> {
  const { initContainers = [], containers = [], volumes = [] } = pod.spec ?? {};
  for (const { name, emptyDir } of volumes) {
    const limit = emptyDir?.sizeLimit;
    if (limit !== undefined && (await directoryBytes(volumeDir(dir, name))) > quantityValue(limit))
      return `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}". `;
  }
  const limits = containers.map(({ resources }) => resources?.limits?.[resource]);
  const total = limits.every((limit) => limit !== undefined)
    ? limits.reduce((sum, limit) => sum + quantityValue(limit), 0)
    : undefined;
  let bytes = 0;
  for (const place of [dir, ...elsewhere]) {
    const size = await directorySize(place);
    bytes += size.bytes;
    if (size.uncounted !== undefined)
      return `Pod ephemeral local storage has ${size.uncounted}, which this node cannot count. `;
  }
  if (total === undefined && bytes > defaultStorageLimit)
    return `Pod ephemeral local storage usage exceeds this node's limit of ${quantity(defaultStorageLimit)} for Pods that set none (resources.limits.${resource}). `;
  if (total !== undefined && bytes > total)
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${quantity(total)}. `;
  for (const { name, resources } of [...initContainers, ...containers]) {
    const limit = resources?.limits?.[resource];
    if (limit === undefined) continue;
    const used = await directoryBytes(path.join(dir, "containers", name));
    if (used > quantityValue(limit))
      return `Container ${name} exceeded its local ephemeral storage limit "${limit}". `;
  }
  return undefined;
}

export function quantity(bytes: number): string {
  return formatQuantity({ ...parseQuantity(String(bytes)), format: "BinarySI" });
}
