/** Open files and connections of the platform's processes: enough of them at the start, and a word when they run out. */
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import {
  type Descriptors,
  descriptorsOf,
  type Logger,
  type MetricsRegistry,
  openFilesLimit,
} from "@spry/kube";
import { UserError } from "../user-error.ts";
import { ownerOf } from "./data-dir-lock.ts";
import { gatewayOf } from "./gateway-process.ts";

/** What a platform needs with a few Functions, and a few open pages of the dashboard. */
const least = 512;
const lookMs = 2_000;
const repeatMs = 60_000;
/** Shares of the limit: from when on it is said, and until when. */
const full = 0.9;
const relieved = 0.8;

/** Throws a UserError where the limit is too low for a platform. */
export function assertDescriptors(limit = openFilesLimit()): void {
  if (limit >= least) return;
  throw new UserError(
    `the limit of open files is ${limit}, and a platform needs ${least} or more`,
    "raise it: `ulimit -n 65536` in the shell, LimitNOFILE= of a systemd unit, --ulimit nofile= of a container",
  );
}

/** Logs when nearly all are in use, once a minute as long as that lasts, and when it is over. */
export async function watchDescriptors(log: Logger, signal: AbortSignal): Promise<void> {
  let saidAt: number | undefined;
  while (!signal.aborted) {
    await setTimeout(lookMs, undefined, { ref: false, signal }).catch(() => {});
    const { open, limit } = descriptorsOf() ?? { open: 0, limit: Infinity };
    const now = performance.now();
    if (open >= limit * full && (saidAt === undefined || now - saidAt >= repeatMs)) {
      saidAt = now;
      log.warn(
        { open, limit },
        "nearly all descriptors are in use: new connections and starts of programs wait; raise the limit of open files",
      );
    } else if (saidAt !== undefined && open < limit * relieved) {
      saidAt = undefined;
      log.info({ open, limit }, "descriptors are free again");
    }
  }
}

/** Under the names of every Prometheus client library. */
export function defineDescriptorMetrics(registry: MetricsRegistry): void {
  if (descriptorsOf() === undefined) return;
  const gauge = (name: string, help: string, read: () => number) =>
    registry.ask("gauge", { name, help }, read);
  gauge("process_open_fds", "Open file descriptors.", () => descriptorsOf()?.open ?? 0);
  gauge("process_max_fds", "Limit of open file descriptors.", openFilesLimit);
}

/** Of the platform that uses the data directory of this kubeconfig, as far as its user may see them. */
export function descriptorsInUse(kubeconfig: string): [part: string, use: Descriptors][] {
  const root = path.dirname(kubeconfig);
  const owner = ownerOf(root);
  if (!owner) return [];
  const all = { platform: owner.pid, gateway: gatewayOf(root)?.pid };
  return Object.entries(all).flatMap(([part, pid]) => {
    const use = pid === undefined ? undefined : descriptorsOf(pid);
    return use ? [[part, use] as [string, Descriptors]] : [];
  });
}
