import { existsSync, mkdirSync, realpathSync } from "node:fs";
import path from "node:path";
import {
  type Clock,
  type Logger,
  mapInTurn,
  messageOf,
  silentLogger,
  systemClock,
} from "@spry/kube";
import { type ClusterView } from "../network/cluster-view.ts";
import { PodNetwork } from "../network/pods/pod-network.ts";
import { callersOf } from "../network/callers.ts";
import { ServiceFiles } from "../network/service-files.ts";
import { AddressPool } from "./addresses.ts";
import { type Confinement } from "./confinement/confinement.ts";
import { isolationOf, nameOf } from "./confinement/description.ts";
import { withoutCoreDumps } from "./confinement/core-dumps.ts";
import { Jails } from "./confinement/jails.ts";
import { PodUsers } from "./confinement/pod-users.ts";
import { findConfinement } from "./confinement/trial.ts";
import { interpreterLabel, Interpreters, interpretersIn } from "./interpreters.ts";
import { removeOciContainers } from "./oci/strays.ts";
import { readExit } from "./process-container.ts";
import { ProcessPod, scratchDirs } from "./process-pod.ts";
import {
  findByEnvironment,
  isAlive,
  listProcesses,
  readMemory,
  signalProcess,
  ticksPerSecond,
} from "./processes.ts";
import {
  exitFile,
  podDir,
  podFile,
  type PodRecord,
  podsDir,
  processFile,
  readProcessRecord,
  type WarmOrigin,
  writeRecord,
} from "./records.ts";
import { recoverPods } from "./recover-pods.ts";
import { type SandboxOptions } from "./sandbox-options.ts";
import {
  type ContainerUsage,
  type LocalImage,
  type PodPlacement,
  type PodSandbox,
  type RecoveredPod,
  type Sandbox,
  type WarmFigures,
} from "./sandbox.ts";
import { openWarmPool } from "./warm/open-warm-pool.ts";
import { type WarmPool } from "./warm/warm-pool.ts";
import { warmContainer, type WarmProcess } from "./warm/warm-process.ts";

/**
 * Runs containers as plain processes of this user: no root file system, no namespaces, no limits;
 * on any system, without privileges. What the image says about paths is kept up by rewriting them.
 */
export function processSandbox(options: SandboxOptions): Sandbox {
  return new ProcessSandbox(options, "it was not asked for");
}

/**
 * The same with containers kept apart as far as this machine has the means, which are tried here. Containers that an
 * earlier platform has started go on as they are.
 */
export async function openProcessSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { dataDir, log = silentLogger } = options;
  mkdirSync(dataDir, { recursive: true });
  const found = await findConfinement(path.resolve(dataDir));
  const real = realpathSync(dataDir);
  if (typeof found !== "string") {
    await withoutCoreDumps();
    if (found.kind === "root") process.umask(umaskForPods);
    return new ProcessSandbox({ ...options, dataDir: real }, found);
  }
  const users = process.getuid?.() === 0 ? await PodUsers.open(real).catch(messageOf) : undefined;
  if (users instanceof PodUsers) {
    log.warn({ why: found }, "Pods are isolated from each other by user accounts only");
    await withoutCoreDumps();
    process.umask(umaskForPods);
    return new ProcessSandbox({ ...options, dataDir: real }, found, users);
  }
  const why = users === undefined ? found : `${found}, and Pods cannot have users (${users})`;
  log.warn({ why }, "Pods are not isolated from each other");
  return new ProcessSandbox({ ...options, dataDir: real }, why);
}

/** What is unpacked and written for Pods has to be readable for their users; the data directory itself is not. */
const umaskForPods = 0o022;

class ProcessSandbox implements Sandbox {
  readonly name = "process";
  readonly keepsOwners = false;
  readonly runtimeVersion: string;
  readonly isolation: string;
  readonly annotations: Record<string, string>;
  readonly #confinement: Confinement | undefined;
  readonly #users: PodUsers | undefined;
  readonly #dataDir: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #addresses: AddressPool;
  readonly #interpreters: Interpreters;
  readonly #services: ServiceFiles;
  readonly #pods = new Map<string, ProcessPod>();
  readonly #warm: WarmPool<WarmProcess> | undefined;
  #hasRecovered = false;

  /** Without a confinement, why there is none, and perhaps users for Pods. */
  constructor(options: SandboxOptions, confinement: Confinement | string, users?: PodUsers) {
    const { dataDir, clock = systemClock, log = silentLogger } = options;
    this.#confinement = typeof confinement === "string" ? undefined : confinement;
    this.#users = users;
    this.runtimeVersion = `process://${nameOf(confinement, users !== undefined)}`;
    this.isolation = isolationOf(confinement, users !== undefined);
    this.annotations = {
      "node.spry.io/isolation": this.isolation,
      "node.spry.io/resource-limits":
        "not enforced: the process sandbox does not support limits of processor time and memory",
      "node.spry.io/warm-processes": warmText(
        options.warm?.max ?? 0,
        this.#confinement !== undefined,
      ),
    };
    const { npmCli, npmConfig, pipConfig, warm } = options;
    this.#dataDir = path.resolve(dataDir);
    this.#clock = clock;
    this.#log = log;
    this.#addresses = new AddressPool(this.#dataDir);
    this.#services = new ServiceFiles(this.#dataDir);
    this.#interpreters = new Interpreters({
      dataDir: this.#dataDir,
      npmCli,
      npmConfig,
      pipConfig,
      log,
    });
    const means = { addresses: this.#addresses, interpreters: this.#interpreters };
    if (this.#confinement && warm && warm.max > 0)
      this.#warm = openWarmPool({
        ...means,
        dataDir: this.#dataDir,
        ...warm,
        confinement: this.#confinement,
        services: this.#services,
        clock,
        log,
      });
  }

  async recover(): Promise<RecoveredPod[]> {
    // The platform may have run with another sandbox before.
    await removeOciContainers(this.#dataDir, this.#clock, this.#log);
    if (process.platform === "linux") await PodNetwork.remove(this.#dataDir, this.#log);
    const recovered = await recoverPods<ProcessPod>(this.#dataDir, {
      keeps: ({ uid }) => Promise.resolve(this.#isOwnPod(uid)),
      add: (record) => this.#add(record),
      adopt(sandbox, dir, name) {
        const known = readProcessRecord(processFile(dir, name));
        const tells = known && (isAlive(known) || readExit(exitFile(dir, name)));
        return tells ? { name, run: known.run, container: sandbox.adopt(known) } : undefined;
      },
    });
    this.#hasRecovered = true;
    await this.#endStrays();
    this.#warm?.clean(new Set(this.#origins().map(({ runtime }) => runtime)));
    await new Jails(this.#dataDir).removeAllBut(new Set(recovered.map(({ uid }) => uid)));
    Jails.removeOrphans();
    this.#services.prepare();
    // So that the first Pod need not wait for it.
    await this.#interpreters.ensure(Interpreters.own, () => {});
    return recovered;
  }

  /** One that another sandbox has made has other directories, and an address of a network that is gone. */
  #isOwnPod(uid: string): boolean {
    const dir = podDir(this.#dataDir, uid);
    return scratchDirs.every((name) => existsSync(path.join(dir, name)));
  }

  /**
   * Ends processes of this data directory that belong to no container which runs: started a moment
   * before a crash, or children that left their group and outlived their parent.
   */
  async #endStrays(): Promise<void> {
    const running = [...this.#pods.values()].flatMap((pod) => pod.running());
    const known = new Set(running.map(({ podUid, name }) => `${podUid}/${name}`));
    for (const { id } of this.#origins()) known.add(`${id}/${warmContainer}`);
    for (const { pid, value } of await findByEnvironment(`SPRY_ROOT=${podsDir(this.#dataDir)}/`)) {
      const [uid = "", , name = ""] = value.split("/");
      if (known.has(`${uid}/${name}`)) continue;
      this.#log.info({ pid, pod: uid }, "ending a process that was left behind");
      signalProcess(pid, "SIGKILL");
    }
  }

  /** What containers were that had waited for their Pods. */
  #origins(): WarmOrigin[] {
    const running = [...this.#pods.values()].flatMap((pod) => pod.running());
    return running.flatMap(({ container }) => container.warm ?? []);
  }

  isPrepared(image: LocalImage): boolean {
    const names = interpretersIn(image.config.Labels?.[interpreterLabel]);
    return names.every((name) => this.#interpreters.binOf(name) !== undefined);
  }

  async prepare(image: LocalImage, progress: (message: string) => void): Promise<void> {
    for (const name of interpretersIn(image.config.Labels?.[interpreterLabel]))
      await this.#interpreters.ensure(name, progress);
    await this.#warm?.learn(image);
  }

  async openPod(pod: PodPlacement): Promise<PodSandbox> {
    const known = this.#pods.get(pod.uid);
    if (known) return known;
    const { uid, namespace, name, expected } = pod;
    const waiting = expected?.image && this.#warm?.reserve(expected.image, expected.isolation);
    const ip = waiting?.ip ?? this.#addresses.take();
    const record: PodRecord = { uid, namespace, name, ip };
    const dir = podDir(this.#dataDir, pod.uid);
    try {
      for (const scratch of scratchDirs)
        mkdirSync(path.join(dir, scratch), { recursive: true, mode: 0o700 });
      writeRecord(podFile(dir), record);
    } catch (error) {
      // Such as a full disk; the Pod is tried again, with another address.
      await waiting?.end();
      this.#addresses.release(ip);
      throw error;
    }
    return this.#add(record, { waiting, isExpected: expected !== undefined });
  }

  #add(
    record: PodRecord,
    {
      waiting,
      isExpected = false,
    }: { waiting?: WarmProcess | undefined; isExpected?: boolean } = {},
  ): ProcessPod {
    this.#addresses.reserve(record.ip);
    const dir = podDir(this.#dataDir, record.uid);
    const pod = new ProcessPod({
      record,
      dir,
      interpreters: this.#interpreters,
      services: this.#services,
      confinement: this.#confinement,
      users: this.#users,
      ownAddress: this.#addresses.distinct,
      waiting,
      pool: isExpected ? this.#warm : undefined,
      clock: this.#clock,
      log: this.#log,
      onClose: () => {
        this.#pods.delete(record.uid);
        this.#addresses.release(record.ip);
      },
    });
    this.#pods.set(record.uid, pod);
    return pod;
  }

  readonly hostAddress = "127.0.0.1";

  offer(): Promise<void> {
    return Promise.resolve();
  }

  /** Policies are kept by the names of Services alone: a Pod that dials an address itself is not stopped. */
  applyCluster(view: ClusterView): Promise<void> {
    // Who calls is known by its address.
    const callers = this.#addresses.distinct ? callersOf(view) : undefined;
    return this.#services.apply(view.services, callers);
  }

  warmFigures(): WarmFigures | undefined {
    return this.#warm?.figures;
  }

  /** Before the recovery it is unknown which processes are strays. */
  async close(): Promise<void> {
    await this.#warm?.close();
    if (!this.#hasRecovered) return;
    await this.#endStrays();
    // Those of containers that still run are kept; all others are created again.
    const running = [...this.#pods].filter(([, pod]) => pod.running().length > 0);
    await new Jails(this.#dataDir).removeAllBut(new Set(running.map(([uid]) => uid)));
  }

  async usage(): Promise<ContainerUsage[]> {
    const all = new Map((await listProcesses()).map((each) => [each.pid, each]));
    const running = [...this.#pods.values()].flatMap((pod) => pod.running());
    const containers = new Set(running.map(({ container }) => container.pid));
    // A program on a terminal has a session of its own, below the container's.
    const bySession = Map.groupBy(all.values(), ({ session }) => {
      if (containers.has(session)) return session;
      return all.get(all.get(session)?.parent ?? 0)?.session ?? session;
    });
    const atOnce = 8;
    return mapInTurn(running, atOnce, async ({ podUid, name, container }) => {
      const processes = bySession.get(container.pid) ?? [];
      const before = container.warm?.ticksBefore ?? 0;
      const ticks = processes.reduce((sum, { cpuTicks }) => sum + cpuTicks, -before);
      const memory = await readMemory(processes.map(({ pid }) => pid));
      return {
        podUid,
        container: name,
        cpuNanoseconds: Math.round((Math.max(0, ticks) * 1e9) / ticksPerSecond),
        memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0),
        startedAt: container.startedAt,
      };
    });
  }
}

function warmText(max: number, hasNamespaces: boolean): string {
  if (max === 0) return "off";
  return hasNamespaces ? `at most ${max}` : "off: they need namespaces";
}
