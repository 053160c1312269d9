import { type Clock, type Logger } from "@spry/kube";
import { type ServiceFiles } from "../../network/service-files.ts";
import { type AddressPool } from "../addresses.ts";
import { type Confinement } from "../confinement/confinement.ts";
import { bindsOf } from "../confinement/container-binds.ts";
import { type Interpreters, interpretersIn } from "../interpreters.ts";
import { hostPath } from "../process-pod.ts";
import { type IsShipped } from "./runtime-copy.ts";
import { type StartOptions, WarmPool } from "./warm-pool.ts";
import { WarmProcess } from "./warm-process.ts";

export interface WarmMeans {
  dataDir: string;
  max: number;
  isShipped: IsShipped;
  confinement: Confinement;
  addresses: AddressPool;
  interpreters: Interpreters;
  services: ServiceFiles;
  clock: Clock;
  log: Logger;
}

/** The pool of a process sandbox whose Pods are kept apart by namespaces. */
export function openWarmPool(means: WarmMeans): WarmPool<WarmProcess> {
  const { dataDir, max, isShipped, addresses, clock, log } = means;
  return new WarmPool({
    dataDir,
    max,
    isShipped,
    start: (id, key, options) => startWaiting(means, id, key, options),
    release: ({ ip }) => addresses.release(ip),
    clock,
    log,
  });
}

async function startWaiting(
  { dataDir, confinement, addresses, interpreters, services, clock }: WarmMeans,
  id: string,
  key: string,
  { runtime, variables }: StartOptions,
): Promise<WarmProcess> {
  const names = interpretersIn(runtime.interpreters);
  const files = await Promise.all(names.map((name) => interpreters.filesOf(name)));
  const bins = names.flatMap((name) => interpreters.binOf(name) ?? []);
  const ip = addresses.take();
  try {
    return await WarmProcess.start({
      id,
      dataDir,
      ip,
      key,
      argv: runtime.argv,
      env: { ...variables, PATH: [...bins, hostPath].join(":") },
      confinement,
      binds: bindsOf({ read: [services.dir, runtime.dir, ...files.flat()], write: [] }),
      clock,
    });
  } catch (error) {
    addresses.release(ip);
    throw error;
  }
}
