import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import path from "node:path";
import { type Logger } from "@spry/kube";
import { findProgram } from "../../network/pods/commands.ts";
import { type PodNetwork } from "../../network/pods/pod-network.ts";
import { listNames } from "../records.ts";
import { type IsShipped } from "../warm/runtime-copy.ts";
import { type StartOptions, WarmPool } from "../warm/warm-pool.ts";
import { type BaseRoots } from "./base-root.ts";
import { stagePath } from "./handover.ts";
import { type OciMount, ociSpecOf } from "./oci-spec.ts";
import { prepareRoot } from "./root-file-system.ts";
import { type OciContext } from "./runtime-process.ts";
import { stageOf, WarmContainer } from "./warm-container.ts";

export interface WarmContainerMeans {
  dataDir: string;
  max: number;
  isShipped: IsShipped;
  bases: BaseRoots;
  network: PodNetwork;
  context: OciContext;
  log: Logger;
}

/** What it waits as; a Pod has its own name. */
const hostName = "waiting";
const needed = ["nsenter", "unshare", "mount", "umount"];

/** Why no container can wait here; undefined if they can. */
export function whyNoWarmContainers(runtime: string, hasOverlays: boolean): string | undefined {
  // Others keep a copy of a container's description, from which commands in it get their environment.
  if (path.basename(runtime) !== "runc") return "they need runc";
  if (!hasOverlays) return "they need overlays";
  const missing = [...needed, "pivot_root"].find((name) => findProgram(name) === undefined);
  return missing === undefined ? undefined : `${missing} is missing, which util-linux has`;
}

/** The pool of containers that wait for Pods with networks of their own. */
export function openWarmContainers(means: WarmContainerMeans): WarmPool<WarmContainer> {
  const { dataDir, max, isShipped, network, context, log } = means;
  return new WarmPool({
    dataDir,
    max,
    isShipped,
    start: (_id, key, options) => startWaiting(means, key, options),
    release: ({ ip }) => network.release(ip),
    clock: context.clock,
    log,
  });
}

async function startWaiting(
  { dataDir, bases, network, context }: WarmContainerMeans,
  key: string,
  { runtime, variables, confined }: StartOptions,
): Promise<WarmContainer> {
  const { cgroups } = context;
  const base = bases.of(runtime.interpreters);
  const pivotRoot = findProgram("pivot_root");
  if (!confined || base === undefined || pivotRoot === undefined)
    throw new Error("its interpreter is gone");
  const id = randomBytes(32).toString("hex");
  const dir = path.join(warmContainersDir(dataDir), id);
  const ip = await network.take();
  try {
    const image = { digest: "", rootDir: runtime.dir, config: {} };
    const oci = ociSpecOf({
      spec: {
        name: hostName,
        run: 0,
        image,
        argv: runtime.entrypoint,
        env: variables,
        workingDir: "/",
        mounts: [],
        ports: [],
        logFile: "",
        terminationLog: "",
        keepExitCode: false,
        hostName,
        isolation: confined.isolation,
      },
      user: confined.user,
      rootMounts: await prepareRoot({ bundle: dir, imageRoot: runtime.dir, base, overlay: true }),
      cgroupMounts: cgroups.mounts(id),
      hostMounts: [stageMount(dir)],
      volumeMounts: [],
      cgroupsPath: cgroups.pathOf(id),
      cgroupVersion: cgroups.version,
      networkNamespace: network.namespaceOf(ip),
      env: { SPRY_READY_FD: "3", SPRY_WARM_FD: "4" },
    });
    const { isTask } = runtime;
    return await WarmContainer.start({ id, dir, ip, key, oci, pivotRoot, isTask }, context);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    network.release(ip);
    throw error;
  }
}

/** What is mounted there on this machine appears in the container. */
function stageMount(dir: string): OciMount {
  const options = ["rbind", "rslave", "nosuid", "nodev"];
  return { destination: stagePath, type: "bind", source: stageOf(dir), options };
}

const warmContainersDir = (dataDir: string): string => path.join(dataDir, "oci", "warm");

/** Removes what an earlier platform has left, but nothing of these containers. */
export function cleanWarmContainers(dataDir: string, known: ReadonlySet<string>): void {
  const dir = warmContainersDir(dataDir);
  for (const id of listNames(dir))
    if (!known.has(id)) rmSync(path.join(dir, id), { recursive: true, force: true });
}
