import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { type Logger, messageOf, silentLogger, systemClock } from "@spry/kube";
import { type ClusterView } from "../../network/cluster-view.ts";
import { AddressPool } from "../addresses.ts";
import { interpreterLabel, Interpreters } from "../interpreters.ts";
import { readExit } from "../process-container.ts";
import { isAlive, signalGroupOf } from "../processes.ts";
import {
  exitFile,
  listNames,
  podDir,
  podFile,
  type PodRecord,
  podsDir,
  processFile,
  readProcessRecord,
  writeRecord,
} from "../records.ts";
import { recoverPods } from "../recover-pods.ts";
import { type SandboxOptions, type WarmOptions } from "../sandbox-options.ts";
import {
  type ContainerUsage,
  type LocalImage,
  type PodPlacement,
  type RecoveredPod,
  type Sandbox,
  type WarmFigures,
} from "../sandbox.ts";
import { BaseRoots } from "./base-root.ts";
import { DescriptorGuard } from "./descriptor-guard.ts";
import { HostFiles } from "./host-files.ts";
import { raiseUserLimits } from "./kernel-limits.ts";
import { type OciContext } from "./runtime-process.ts";
import { nameFilesDir, writeNameFiles } from "./name-files.ts";
import { OciNetwork } from "./oci-network.ts";
import { OciPod, type OciPodOptions } from "./oci-pod.ts";
import { readOciRecord } from "./oci-records.ts";
import { findRuntime } from "./oci-runtime.ts";
import { killStrayRuntimes, removeStrayContainers, surroundingsOf } from "./strays.ts";
import { runTrial } from "./trial.ts";
import { cleanWarmContainers, openWarmContainers, whyNoWarmContainers } from "./open-warm-pool.ts";
import { type WarmContainer } from "./warm-container.ts";
import { type WarmPool } from "../warm/warm-pool.ts";

export interface OciSandboxOptions extends SandboxOptions {
  /** The runtime's program; by default the runc, or else the crun, on the `PATH`. */
  runtime?: string | undefined;
  /** Without networks of Pods' own it is not opened: Functions would know no Service by name. */
  needsNetwork?: boolean;
}

/**
 * A sandbox on an OCI runtime. Runs a small container first, and throws, saying what is missing,
 * where that does not work.
 */
export async function openOciSandbox(options: OciSandboxOptions): Promise<Sandbox> {
  if (process.platform !== "linux") throw new Error("it needs Linux");
  if (process.getuid?.() !== 0) throw new Error("it needs root");
  const sandbox = new OciSandbox(options);
  await sandbox.try();
  return sandbox;
}

class OciSandbox implements Sandbox {
  readonly name = "oci";
  get keepsOwners(): boolean {
    return this.#overlay;
  }
  get isolation(): string {
    const has =
      "each container has its own root file system, namespaces, limits and system call filter, and shares this machine's kernel";
    const network = this.#network ? "" : `; ${this.#sharedNetwork}`;
    return `${has}${network}; ${this.#kernelLimits}`;
  }
  readonly #dataDir: string;
  readonly #log: Logger;
  readonly #addresses: AddressPool;
  readonly #bases: BaseRoots;
  readonly #hostFiles: HostFiles;
  readonly #context: OciContext;
  readonly #pods = new Map<string, OciPod>();
  readonly #guard: DescriptorGuard;
  /** Limits of the kernel for each user that could not be raised; undefined until that was tried. */
  #lowLimits: string[] | undefined;
  #overlay = true;
  #network: OciNetwork | undefined;
  /** Why Pods have no networks of their own. */
  #withoutNetwork = "";
  readonly #needsNetwork: boolean;
  readonly #warmOptions: WarmOptions | undefined;
  #warm: WarmPool<WarmContainer> | undefined;

  constructor(options: OciSandboxOptions) {
    const { npmCli, npmConfig, pipConfig, clock = systemClock, log = silentLogger } = options;
    mkdirSync(options.dataDir, { recursive: true });
    // What is mounted is compared with real paths.
    this.#dataDir = realpathSync(options.dataDir);
    this.#log = log;
    this.#needsNetwork = options.needsNetwork ?? false;
    this.#warmOptions = options.warm;
    this.#addresses = new AddressPool(this.#dataDir);
    const interpreters = new Interpreters({
      dataDir: this.#dataDir,
      npmCli,
      npmConfig,
      pipConfig,
      log,
    });
    this.#bases = new BaseRoots(path.join(this.#dataDir, "oci", "base"), interpreters);
    this.#hostFiles = new HostFiles({ npmCli, npmConfig, pipConfig });
    this.#context = surroundingsOf(this.#dataDir, runtimeOf(options.runtime), clock);
    const { cgroups } = this.#context;
    const running = () => this.#containers().map(({ container }) => container);
    this.#guard = new DescriptorGuard(running, (id) => cgroups.pids(id), clock);
  }

  get runtimeVersion(): string {
    const { runtime } = this.#context;
    return `oci://${path.basename(runtime.file)}`;
  }

  get annotations(): Record<string, string> {
    const network = this.#network
      ? `own: every Pod has a network namespace and an address of ${this.#network.pods.block.cidr}; NetworkPolicies are kept`
      : `shared: every Pod has a loopback address of its own. In detail: ${this.#sharedNetwork}`;
    return {
      "node.spry.io/isolation": this.isolation,
      "node.spry.io/resource-limits": "enforced: containers run in cgroups of their own",
      "node.spry.io/network": network,
      "node.spry.io/warm-processes": this.#warmText,
    };
  }

  get #sharedNetwork(): string {
    return `Pods share this machine's network, Functions know no Service by its name, and NetworkPolicies are not kept, because ${this.#withoutNetwork}`;
  }

  get #kernelLimits(): string {
    const counted = "inotify instances and open files are counted for each container";
    if (!this.#lowLimits?.length)
      return `limits of the kernel for each user, which Pods share, are raised, and ${counted}`;
    return `Pods share limits of the kernel for each user (${this.#lowLimits.join(", ")}), which could not be raised; ${counted}`;
  }

  get #warmText(): string {
    const { max = 0 } = this.#warmOptions ?? {};
    if (max === 0) return "off";
    const why = this.#whyNotWarm;
    return why === undefined ? `at most ${max}` : `off: ${why}`;
  }

  get #whyNotWarm(): string | undefined {
    if (!this.#network) return "they need networks of Pods' own";
    return whyNoWarmContainers(this.#context.runtime.file, this.#overlay);
  }

  get hostAddress(): string {
    return this.#network?.hostAddress ?? "127.0.0.1";
  }

  async offer(port: number): Promise<void> {
    await this.#network?.offer(port);
  }

  async recover(): Promise<RecoveredPod[]> {
    await killStrayRuntimes(this.#dataDir);
    const recovered = await recoverPods<OciPod>(this.#dataDir, {
      keeps: (record) => this.#keeps(record),
      isOutdated: (record) => this.#isOutdated(record),
      add: (record) => this.#add(record),
      adopt: (sandbox, dir, name) => {
        killPlainProcess(dir, name);
        const known = this.#knownContainer(dir, name);
        return known && { name, run: known.run, container: sandbox.adopt(known) };
      },
    });
    const ids = new Set(this.#containers().map(({ container }) => container.id));
    await removeStrayContainers(this.#context, ids, this.#log);
    cleanWarmContainers(this.#dataDir, ids);
    await this.#network?.pods.removeStrays();
    await this.#bases.ensure(Interpreters.own, () => {});
    const isIdle = recovered.every(({ containers }) => containers.length === 0);
    if (isIdle) await this.#bases.prune();
    // A container that was taken over has its runtime from its Pod's image.
    this.#warm?.clean(new Set());
    return recovered;
  }

  #openWarm(): void {
    const { max = 0 } = this.#warmOptions ?? {};
    if (!this.#warmOptions || !this.#network || max === 0 || this.#whyNotWarm !== undefined) return;
    this.#warm = openWarmContainers({
      ...this.#warmOptions,
      dataDir: this.#dataDir,
      bases: this.#bases,
      network: this.#network.pods,
      context: this.#context,
      log: this.#log,
    });
  }

  warmFigures(): WarmFigures | undefined {
    return this.#warm?.figures;
  }

  /** Also those that have not been taken over yet. */
  #hasContainers(): boolean {
    return listNames(podsDir(this.#dataDir)).some((uid) =>
      this.#isAnyAlive(podDir(this.#dataDir, uid)),
    );
  }

  /**
   * A Pod whose network cannot be restored cannot continue: it is set up again. One whose kind of network has changed goes on while
   * its programs run, and is made again by the agent.
   */
  async #keeps({ uid, network, ip }: PodRecord): Promise<boolean> {
    const dir = podDir(this.#dataDir, uid);
    if (!existsSync(path.join(dir, nameFilesDir))) {
      // The process sandbox has made it: it has other directories, and another address.
      for (const name of listNames(path.join(dir, "containers"))) killPlainProcess(dir, name);
      return false;
    }
    if (this.#isOutdated({ network, ip })) return this.#isAnyAlive(dir);
    return network !== "own" || (await this.#network?.pods.keep(ip)) === true;
  }

  /** It has a network of its own where Pods now share the machine's, or the other way round. */
  #isOutdated({ network, ip }: Pick<PodRecord, "network" | "ip">): boolean {
    if (network === "own") return this.#network === undefined;
    return this.#network !== undefined && ip !== this.#network.hostAddress;
  }

  #isAnyAlive(dir: string): boolean {
    return listNames(path.join(dir, "containers")).some((name) => {
      const known = readOciRecord(dir, name);
      return known !== undefined && isAlive(known);
    });
  }

  /** A container that still runs, or of whose end something is known. */
  #knownContainer(dir: string, name: string) {
    const known = readOciRecord(dir, name);
    if (!known) return undefined;
    const { cgroups } = this.#context;
    const tells = isAlive(known) || readExit(exitFile(dir, name)) || cgroups.oomKills(known.id) > 0;
    return tells ? known : undefined;
  }

  isPrepared(image: LocalImage): boolean {
    const interpreter = image.config.Labels?.[interpreterLabel];
    return !interpreter || this.#bases.of(interpreter) !== undefined;
  }

  async prepare(image: LocalImage, progress: (message: string) => void): Promise<void> {
    const interpreter = image.config.Labels?.[interpreterLabel];
    if (interpreter) await this.#bases.ensure(interpreter, progress);
    await this.#warm?.learn(image);
  }

  async openPod(pod: PodPlacement): Promise<OciPod> {
    const known = this.#pods.get(pod.uid);
    if (known) return known;
    const { uid, namespace, name, hostNetwork = false } = pod;
    const pool = mayBeWarm(pod) ? this.#warm : undefined;
    const waiting =
      pod.expected?.image && pool?.reserve(pod.expected.image, pod.expected.isolation);
    const place = waiting ? { ip: waiting.ip, network: "own" as const } : undefined;
    const address = place ?? (await this.#addressFor(hostNetwork));
    const record: PodRecord = { uid, namespace, name, ...address };
    const dir = podDir(this.#dataDir, uid);
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const hostAddress = this.#network?.hostAddress;
      writeNameFiles(dir, { pod, ip: record.ip, hostAddress });
      // Written last: a Pod with a record is complete, and the next agent takes it over if this one is killed.
      writeRecord(podFile(dir), record);
    } catch (error) {
      await waiting?.end();
      if (waiting) this.#network?.pods.release(waiting.ip);
      throw error;
    }
    return this.#add(record, { waiting, pool });
  }

  async #addressFor(hostNetwork: boolean): Promise<Pick<PodRecord, "ip" | "network">> {
    if (!this.#network) return { ip: this.#addresses.take() };
    if (hostNetwork) return { ip: this.#network.hostAddress };
    return { ip: await this.#network.pods.take(), network: "own" };
  }

  #add(record: PodRecord, warm: Pick<OciPodOptions, "waiting" | "pool"> = {}): OciPod {
    this.#addresses.reserve(record.ip);
    const network = record.network === "own" ? this.#network?.pods : undefined;
    const pod = new OciPod({
      ...this.#context,
      ...warm,
      log: this.#log,
      dir: podDir(this.#dataDir, record.uid),
      record,
      bases: this.#bases,
      hostFiles: this.#hostFiles,
      overlay: this.#overlay,
      networkNamespace: network?.namespaceOf(record.ip),
      onClose: async () => {
        this.#pods.delete(record.uid);
        this.#addresses.release(record.ip);
        network?.release(record.ip);
      },
    });
    this.#pods.set(record.uid, pod);
    return pod;
  }

  async applyCluster(view: ClusterView): Promise<void> {
    await this.#network?.apply(view);
  }

  async close(): Promise<void> {
    this.#guard.close();
    await this.#warm?.close();
    const network = this.#network;
    if (!network || this.#hasContainers()) return;
    this.#goWithoutNetwork("the platform is being stopped");
    await network.close();
  }

  usage(): Promise<ContainerUsage[]> {
    const all = this.#containers().flatMap(({ podUid, container }) => {
      const used = this.#context.cgroups.usage(container.id);
      const { startedAt, record } = container;
      if (!used) return [];
      const cpuNanoseconds = Math.max(0, used.cpuNanoseconds - (record.cpuBefore ?? 0));
      return [{ podUid, container: record.container, startedAt, ...used, cpuNanoseconds }];
    });
    return Promise.resolve(all);
  }

  #containers() {
    return [...this.#pods].flatMap(([podUid, pod]) =>
      pod.running().map((container) => ({ podUid, container })),
    );
  }

  /** Runs a minimal container; without overlays if they are not available here. */
  async try(): Promise<void> {
    await Promise.all([
      this.#bases.ensure(Interpreters.own, () => {}),
      this.#openNetwork().catch((error: unknown) => {
        this.#goWithoutNetwork(messageOf(error));
        if (this.#needsNetwork) throw this.#networkMissing();
        this.#log.warn({ why: this.#withoutNetwork }, "Pods use the machine's own network");
      }),
    ]);
    try {
      await this.#tryOverlay();
    } catch (error) {
      if (!this.#network) throw error;
      const network = this.#network;
      this.#goWithoutNetwork(messageOf(error));
      await network.close();
      if (this.#needsNetwork) throw this.#networkMissing();
      await this.#tryOverlay();
    }
    await this.#network?.pods.prepare();
    this.#lowLimits = raiseUserLimits(this.#log);
    this.#guard.open();
    this.#openWarm();
  }

  async #openNetwork(): Promise<void> {
    this.#network = await OciNetwork.open(this.#dataDir, this.#log);
  }

  #networkMissing(): Error {
    return new Error(`Pods would have no networks of their own: ${this.#withoutNetwork}`);
  }

  #goWithoutNetwork(why: string): void {
    this.#network = undefined;
    this.#withoutNetwork = why;
  }

  async #tryOverlay(): Promise<void> {
    this.#overlay = true;
    try {
      await this.#runTrial();
    } catch {
      this.#overlay = false;
      await this.#runTrial();
    }
  }

  async #runTrial(): Promise<void> {
    const identity = { uid: `trial-${randomUUID()}`, namespace: "default", name: "trial" };
    const pod = await this.openPod(identity);
    try {
      await runTrial(pod, this.#context);
    } finally {
      await pod.close();
    }
  }
}

/** What waits has a network of its own, and has seen no name server but the usual one. */
function mayBeWarm({ expected, hostNetwork = false, dns = {} }: PodPlacement): boolean {
  const { policy = "ClusterFirst", config } = dns;
  return expected !== undefined && !hostNetwork && policy === "ClusterFirst" && !config;
}

function runtimeOf(given: string | undefined): string {
  const file = given ?? findRuntime();
  if (file === undefined || !existsSync(file))
    throw new Error("it needs runc or crun: apt install runc");
  return file;
}

/** What the process sandbox of the same data directory has left running. */
function killPlainProcess(dir: string, name: string): void {
  const known = readProcessRecord(processFile(dir, name));
  if (known && isAlive(known)) signalGroupOf(known, "SIGKILL");
  void rm(processFile(dir, name), { force: true });
}
