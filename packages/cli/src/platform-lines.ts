/** What `spry status` says of the platform of a kubeconfig, where that runs on this machine. */
import path from "node:path";
import { ownerOf } from "./platform/data-dir-lock.ts";
import { descriptorsInUse } from "./platform/descriptors.ts";
import { diskUseOf } from "./platform/disk-use.ts";
import { sizeText } from "./size-text.ts";
import { logNames } from "./platform/log-files.ts";

export function descriptorLines(kubeconfig: string | undefined): string[] {
  const all = kubeconfig === undefined ? [] : descriptorsInUse(kubeconfig);
  if (all.length === 0) return [];
  const uses = all.map(([part, { open, limit }]) => `${part} ${open} of ${limit}`);
  const isFull = all.some(([, { open, limit }]) => open >= limit * 0.9);
  return [
    `Open files: ${uses.join(", ")}`,
    ...(isFull ? ["            nearly all are in use: what needs one waits; raise the limit"] : []),
  ];
}

/** The same for programs; empty where no platform of this machine has written the kubeconfig. */
export function platformFields(kubeconfig: string | undefined): object {
  const root = kubeconfig === undefined ? undefined : path.dirname(kubeconfig);
  const descriptors = kubeconfig === undefined ? [] : descriptorsInUse(kubeconfig);
  const files = descriptors.map(([part, { open, limit }]) => ({ part, open, limit }));
  if (root === undefined || !ownerOf(root))
    return { ...(files.length > 0 && { openFiles: files }) };
  const { parts, isWhole } = diskUseOf(root);
  return {
    openFiles: files,
    dataDirectory: root,
    disk: { isWhole, parts: parts.map(([part, bytes]) => ({ part, bytes })) },
    logs: logNames.map((name) => path.join(root, "logs", name)),
  };
}

/** Where the data and the logs are, and how much of the disk each part takes. */
export function diskLines(kubeconfig: string | undefined): string[] {
  const root = kubeconfig === undefined ? undefined : path.dirname(kubeconfig);
  if (root === undefined || !ownerOf(root)) return [];
  const { parts, isWhole } = diskUseOf(root);
  const uses = parts
    .filter(([, bytes]) => bytes >= 2 ** 20)
    .map(([name, bytes]) => `${name} ${sizeText(bytes)}`);
  const sum = parts.reduce((all, [, bytes]) => all + bytes, 0);
  const least = isWhole ? "" : "at least ";
  return [
    `Data:       ${root}`,
    `Disk:       ${least}${sizeText(sum)}${uses.length > 0 ? ` (${uses.join(", ")})` : ""}`,
    `Logs:       ${logNames.map((name) => path.join(root, "logs", name)).join(", ")}`,
  ];
}
