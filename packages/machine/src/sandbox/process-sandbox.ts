import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { type Clock, type Logger, silentLogger, systemClock } from "@spry/kube";
import { AddressPool } from "./addresses.ts";
import { interpreterLabel, Interpreters, interpretersIn } from "./interpreters.ts";
import { buildRootView, PathRewriter } from "./path-rewriting.ts";
import { removeOciContainers } from "./oci/strays.ts";
import { ProcessContainer, readExit } from "./process-container.ts";
import {
  findByEnvironment,
  isAlive,
  listProcesses,
  readMemory,
  signalGroup,
  signalProcess,
  ticksPerSecond,
} from "./processes.ts";
import {
  containerDir,
  exitFile,
  listNames,
  podDir,
  podFile,
  type PodRecord,
  podsDir,
  processFile,
  type ProcessRecord,
  readRecord,
  writeRecord,
} from "./records.ts";
import {
  type ContainerSpec,
  type ContainerUsage,
  type LocalImage,
  type PodIdentity,
  type PodSandbox,
  type RecoveredPod,
  type Sandbox,
  type SandboxContainer,
} from "./sandbox.ts";

export interface ProcessSandboxOptions {
  /** The node's data directory. */
  dataDir: string;
  /** npm's `npm-cli.js`, for images that want npm or another major of Node.js. */
  npmCli?: string | undefined;
  /** An npmrc with this machine's way to its package registry, used as npm's global configuration. */
  npmConfig?: string | undefined;
  /** The same for pip. */
  pipConfig?: string | undefined;
  clock?: Clock;
  log?: Logger;
}

const hostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Runs containers as plain processes of this user: no root file system, no namespaces, no limits;
 * on any system, without privileges. What the image says about paths is kept up by rewriting them.
 */
export function processSandbox(options: ProcessSandboxOptions): Sandbox {
  return new ProcessSandbox(options);
}

class ProcessSandbox implements Sandbox {
  readonly name = "process";
  readonly annotations = {
    "node.spry.io/resource-limits":
      "not enforced: the process sandbox runs containers as plain processes of the platform's user",
  };
  readonly #dataDir: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #addresses: AddressPool;
  readonly #interpreters: Interpreters;
  readonly #pods = new Map<string, ProcessPod>();

  constructor(options: ProcessSandboxOptions) {
    const { dataDir, clock = systemClock, log = silentLogger } = options;
    const { npmCli, npmConfig, pipConfig } = options;
    this.#dataDir = path.resolve(dataDir);
    this.#clock = clock;
    this.#log = log;
    this.#addresses = new AddressPool(this.#dataDir);
    this.#interpreters = new Interpreters({
      dataDir: this.#dataDir,
      npmCli,
      npmConfig,
      pipConfig,
      log,
    });
  }

  async recover(): Promise<RecoveredPod[]> {
    // The platform may have run with another sandbox before.
    await removeOciContainers(this.#dataDir, this.#clock, this.#log);
    const recovered: RecoveredPod[] = [];
    for (const uid of listNames(podsDir(this.#dataDir))) {
      const dir = podDir(this.#dataDir, uid);
      const record = readRecord(podFile(dir)) as PodRecord | undefined;
      if (!record || record.uid !== uid) {
        await rm(dir, { recursive: true, force: true });
        continue;
      }
      const sandbox = this.#add(record);
      const containers = listNames(path.join(dir, "containers")).flatMap((name) => {
        const known = readRecord(processFile(dir, name)) as ProcessRecord | undefined;
        const isKnown = known && (isAlive(known) || readExit(exitFile(dir, name)));
        if (!isKnown) return [];
        const container = sandbox.adopt(known);
        return [{ name, run: known.run, container }];
      });
      const { namespace, name } = record;
      recovered.push({ uid, namespace, name, sandbox, containers });
    }
    await this.#killStrangers();
    // So that the first Pod need not wait for it.
    await this.#interpreters.ensure(Interpreters.own, () => {});
    return recovered;
  }

  /**
   * Ends processes of this data directory that no record names: started a moment before a crash,
   * or children that left their group. What was adopted keeps its children.
   */
  async #killStrangers(): Promise<void> {
    const sessions = new Map((await listProcesses()).map(({ pid, session }) => [pid, session]));
    const adopted = new Set([...this.#pods.values()].flatMap((pod) => pod.pids()));
    const prefix = `SPRY_ROOT=${podsDir(this.#dataDir)}/`;
    for (const { pid, value } of await findByEnvironment(prefix)) {
      if (adopted.has(sessions.get(pid) ?? 0) || adopted.has(pid)) continue;
      // A child in a session of its own still belongs to its Pod while that Pod's main process runs.
      const uid = value.split("/")[0] ?? "";
      if ((this.#pods.get(uid)?.pids().length ?? 0) > 0) continue;
      this.#log.info({ pid, pod: uid }, "ending a process that was left behind");
      signalProcess(pid, "SIGKILL");
    }
  }

  isPrepared(image: LocalImage): boolean {
    const names = interpretersIn(image.config.Labels?.[interpreterLabel]);
    return names.every((name) => this.#interpreters.binOf(name) !== undefined);
  }

  async prepare(image: LocalImage, progress: (message: string) => void): Promise<void> {
    for (const name of interpretersIn(image.config.Labels?.[interpreterLabel]))
      await this.#interpreters.ensure(name, progress);
  }

  openPod(pod: PodIdentity): Promise<PodSandbox> {
    const known = this.#pods.get(pod.uid);
    if (known) return Promise.resolve(known);
    const record: PodRecord = { ...pod, ip: this.#addresses.take() };
    const dir = podDir(this.#dataDir, pod.uid);
    mkdirSync(path.join(dir, "tmp"), { recursive: true, mode: 0o700 });
    mkdirSync(path.join(dir, "home"), { mode: 0o700 });
    writeRecord(podFile(dir), record);
    return Promise.resolve(this.#add(record));
  }

  #add(record: PodRecord): ProcessPod {
    this.#addresses.reserve(record.ip);
    const dir = podDir(this.#dataDir, record.uid);
    const pod = new ProcessPod(
      record,
      dir,
      this.#interpreters,
      this.#addresses.distinct,
      this.#clock,
      () => {
        this.#pods.delete(record.uid);
        this.#addresses.release(record.ip);
      },
    );
    this.#pods.set(record.uid, pod);
    return pod;
  }

  async usage(): Promise<ContainerUsage[]> {
    const bySession = Map.groupBy(await listProcesses(), ({ session }) => session);
    const running = [...this.#pods.values()].flatMap((pod) => pod.running());
    return Promise.all(
      running.map(async ({ podUid, name, container }) => {
        const processes = bySession.get(container.pid) ?? [];
        const ticks = processes.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0);
        const memory = await Promise.all(processes.map(({ pid }) => readMemory(pid)));
        return {
          podUid,
          container: name,
          cpuNanoseconds: Math.round((ticks * 1e9) / ticksPerSecond),
          memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0),
          startedAt: container.startedAt,
        };
      }),
    );
  }
}

class ProcessPod implements PodSandbox {
  readonly ip: string;
  readonly dir: string;
  readonly #uid: string;
  readonly #interpreters: Interpreters;
  readonly #ownAddress: boolean;
  readonly #clock: Clock;
  readonly #onClose: () => void;
  readonly #running = new Map<string, ProcessContainer>();

  constructor(
    record: PodRecord,
    dir: string,
    interpreters: Interpreters,
    ownAddress: boolean,
    clock: Clock,
    onClose: () => void,
  ) {
    this.ip = record.ip;
    this.dir = dir;
    this.#uid = record.uid;
    this.#interpreters = interpreters;
    this.#ownAddress = ownAddress;
    this.#clock = clock;
    this.#onClose = onClose;
  }

  async start(spec: ContainerSpec): Promise<SandboxContainer> {
    if (!this.#ownAddress) for (const port of spec.ports) await assertFree(port);
    const dir = containerDir(this.dir, spec.name);
    const root = path.join(dir, "root");
    await buildRootView(root, spec.image.rootDir, spec.mounts);
    const rewriter = new PathRewriter(spec.image.rootDir, spec.mounts);
    const cwd = await this.#workingDir(spec, rewriter, root);
    const env = this.#environment(spec, rewriter, root);
    const argv = spec.argv.map((argument) => rewriter.rewrite(argument));
    const id = randomBytes(32).toString("hex");
    const left = exitFile(this.dir, spec.name);
    await rm(left, { force: true });
    const launch = {
      argv,
      env,
      cwd,
      logFile: spec.logFile,
      input: spec.stdin && { file: path.join(dir, "stdin"), mode: spec.stdin },
      exitFile: spec.keepExitCode ? left : undefined,
    };
    const container = ProcessContainer.start(id, launch, this.#clock);
    if (container.pid > 0) {
      const { pid, startTicks, startedAt } = container;
      const record = {
        container: spec.name,
        run: spec.run,
        id,
        pid,
        startTicks,
        startedAt,
        cwd,
        env,
      };
      writeRecord(processFile(this.dir, spec.name), record);
      this.#track(spec.name, container);
    }
    return container;
  }

  adopt(record: ProcessRecord): ProcessContainer {
    const left = exitFile(this.dir, record.container);
    const container = ProcessContainer.adopt(record, left, this.#clock);
    if (isAlive(record)) this.#track(record.container, container);
    return container;
  }

  #track(name: string, container: ProcessContainer): void {
    this.#running.set(name, container);
    void container.exited.then(
      () => this.#running.get(name) === container && this.#running.delete(name),
    );
  }

  pids(): number[] {
    return [...this.#running.values()].map(({ pid }) => pid);
  }

  running() {
    return [...this.#running].map(([name, container]) => ({ podUid: this.#uid, name, container }));
  }

  /** The real working directory; one that neither image nor mounts have is made, as runtimes do. */
  async #workingDir(spec: ContainerSpec, rewriter: PathRewriter, root: string): Promise<string> {
    const wanted = spec.workingDir || spec.image.config.WorkingDir || "/";
    const real = rewriter.realPath(wanted);
    if (real !== undefined && existsSync(real)) return real;
    const dir = path.join(root, path.posix.normalize(`/${wanted}`));
    await mkdir(dir, { recursive: true });
    return dir;
  }

  /** Exactly what image and Pod say, and the few variables that every container of this sandbox has. */
  #environment(spec: ContainerSpec, rewriter: PathRewriter, root: string): Record<string, string> {
    const env: Record<string, string> = {
      HOME: path.join(this.dir, "home"),
      HOSTNAME: spec.hostName,
      SERVER_HOST: this.ip,
    };
    for (const [name, value] of Object.entries(spec.env)) env[name] = rewriter.rewrite(value);
    const names = interpretersIn(spec.image.config.Labels?.[interpreterLabel]);
    const bins = names.flatMap((name) => this.#interpreters.binOf(name) ?? []);
    const own = (env["PATH"] ?? hostPath)
      .split(":")
      .flatMap((dir) => [...new Set([rewriter.realPath(dir) ?? dir, dir])]);
    env["PATH"] = [...bins, ...own].join(":");
    env["TMPDIR"] = path.join(this.dir, "tmp");
    env["SPRY_ROOT"] = root;
    env["SPRY_TERMINATION_LOG"] = spec.terminationLog;
    return env;
  }

  async close(): Promise<void> {
    for (const { container } of this.running()) signalGroup(container.pid, "SIGKILL");
    for (const { pid } of await findByEnvironment(`SPRY_ROOT=${this.dir}/`))
      signalProcess(pid, "SIGKILL");
    // A process that is being killed may still be writing.
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    this.#onClose();
  }
}

/** Where Pods share one address, says which port is taken instead of letting the program fail. */
function assertFree(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (cause) =>
      reject(
        new Error(
          `port ${port} of 127.0.0.1 is taken: on this system all Pods share it; end the other program or Pod`,
          { cause },
        ),
      ),
    );
    server.listen(port, "127.0.0.1", () => server.close(() => resolve()));
  });
}
