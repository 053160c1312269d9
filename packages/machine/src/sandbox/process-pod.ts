import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { type Clock, type Logger, messageOf, sleep, thisBoot } from "@spry/kube";
import { type ServiceFiles } from "../network/service-files.ts";
import { type Confinement, userOfAddress } from "./confinement/confinement.ts";
import { bindsOf, sharedScratch, volumeBinds } from "./confinement/container-binds.ts";
import { type PodUsers } from "./confinement/pod-users.ts";
import { inClusterConfig } from "./in-cluster-config.ts";
import { interpreterLabel, type Interpreters, interpretersIn } from "./interpreters.ts";
import { buildRootView, PathRewriter } from "./path-rewriting.ts";
import { type Launch, ProcessContainer } from "./process-container.ts";
import { findByEnvironment, findByUser, isAlive, signalProcess } from "./processes.ts";
import {
  containerDir,
  exitFile,
  type PodRecord,
  processFile,
  type ProcessRecord,
  writeRecord,
} from "./records.ts";
import { removeTree } from "./remove-tree.ts";
import { type ContainerSpec, type PodSandbox, type SandboxContainer } from "./sandbox.ts";
import { variablesFor } from "./warm/start-options.ts";
import { type WarmPool } from "./warm/warm-pool.ts";
import { type WarmProcess } from "./warm/warm-process.ts";

export interface ProcessPodOptions {
  record: PodRecord;
  dir: string;
  interpreters: Interpreters;
  services: ServiceFiles;
  /** How its containers are kept apart; nothing where this machine has no means. */
  confinement: Confinement | undefined;
  /** Gives its containers a user of their own, where this machine has no more. */
  users: PodUsers | undefined;
  /** Otherwise all Pods share one address and its ports. */
  ownAddress: boolean;
  /** What may become its container; it is this Pod's alone. */
  waiting?: WarmProcess | undefined;
  /** Where starts are counted, if processes may wait for Pods like this one. */
  pool?: WarmPool<WarmProcess> | undefined;
  clock: Clock;
  log: Logger;
  onClose: () => void;
}

/** The kernel ends a killed process within this time, if nothing holds it. */
const endMs = 5_000;
/** Of a Pod, for its containers to write to: `TMPDIR`, `HOME`, and what stands for /dev/shm. */
export const scratchDirs = ["tmp", "home", "shm"];
export const hostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** A Pod whose containers are plain processes of this machine. */
export class ProcessPod implements PodSandbox {
  readonly ip: string;
  readonly dir: string;
  readonly owner: { uid: number; gid: number } | undefined;
  readonly elsewhere: readonly string[];
  readonly #options: ProcessPodOptions;
  readonly #running = new Map<string, ProcessContainer>();
  #waiting: WarmProcess | undefined;

  constructor(options: ProcessPodOptions) {
    const { confinement, users, record } = options;
    this.ip = record.ip;
    this.dir = options.dir;
    this.owner = confinement?.kind === "root" || users ? userOfAddress(record.ip) : undefined;
    this.elsewhere = confinement ? [confinement.jails.writtenBy(record.uid)] : [];
    this.#options = options;
    this.#waiting = options.waiting;
  }

  async start(spec: ContainerSpec): Promise<SandboxContainer> {
    if (!this.#options.ownAddress) for (const port of spec.ports) await assertFree(port);
    const dir = containerDir(this.dir, spec.name);
    const root = path.join(dir, "root");
    await buildRootView(root, spec.image.rootDir, spec.mounts);
    const rewriter = new PathRewriter(spec.image.rootDir, spec.mounts);
    const cwd = await this.#workingDir(spec, rewriter, root, dir);
    const env = this.#environment(spec, rewriter, root);
    const { namespace } = this.#options.record;
    const kubeconfig = await inClusterConfig(dir, spec.mounts, env, namespace);
    if (kubeconfig) env["KUBECONFIG"] = kubeconfig;
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
      tty: spec.tty,
      hostName: spec.hostName,
      confined: await this.#confine(spec, { root, cwd, kubeconfig, dir }),
      user: this.#userFor(spec, { cwd, kubeconfig, dir }),
    };
    const container =
      (await this.#takeOver(id, spec, launch)) ??
      (await ProcessContainer.start(id, launch, this.#options.clock));
    if (container.pid > 0) {
      const { pid, startTicks, startedAt } = container;
      const record = {
        container: spec.name,
        run: spec.run,
        id,
        pid,
        startTicks,
        boot: thisBoot(),
        startedAt,
        cwd,
        env,
        confined: launch.confined?.as,
        user: launch.user?.as,
        warm: container.warm,
      };
      writeRecord(processFile(this.dir, spec.name), record);
      this.#track(spec.name, container);
    }
    return container;
  }

  /**
   * The process that has waited for this Pod, as its container; undefined if there is none, or not one that was started
   * as this container has to be. It is used once: a second start in the same Pod is an ordinary one.
   */
  async #takeOver(
    id: string,
    spec: ContainerSpec,
    launch: Launch,
  ): Promise<ProcessContainer | undefined> {
    const { pool, services } = this.#options;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!pool || !launch.confined) return undefined;
    const variables = variablesFor(spec, launch, services.nodeOptions());
    const runtime = pool.runtimeOf(spec.image);
    const fits = runtime && variables && waiting?.key === pool.keyOf({ runtime, variables });
    const taken = fits
      ? await this.#become(id, waiting, runtime.digest, launch, spec.hostName)
      : undefined;
    if (waiting && !fits) await waiting.end();
    if (variables) pool.started(spec.image, { variables }, taken !== undefined);
    return taken;
  }

  async #become(
    id: string,
    waiting: WarmProcess,
    runtime: string,
    launch: Launch,
    hostName: string,
  ): Promise<ProcessContainer | undefined> {
    const { argv, env, cwd, logFile, confined } = launch;
    const { clock, log } = this.#options;
    if (!confined) return undefined;
    const { as, binds } = confined;
    const program = { argv, env, cwd, hostName };
    try {
      const { ready } = await waiting.becomes({
        confined: as,
        binds,
        program,
        directory: cwd,
        logFile,
      });
      const { pid, startTicks, exited, ticksBefore } = waiting;
      const warm = { id: waiting.id, runtime, ticksBefore };
      return ProcessContainer.takeOver(id, { pid, startTicks, exited, ready, warm }, launch, clock);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a warm process could not be used, starting another");
      return undefined;
    }
  }

  /** Gives what the container uses to its user, and closes it to those of other Pods. */
  #userFor(
    spec: ContainerSpec,
    { cwd, kubeconfig, dir }: { cwd: string; kubeconfig: string | undefined; dir: string },
  ): Launch["user"] {
    const { users, record } = this.#options;
    if (!users || !this.owner) return undefined;
    const { uid, gid } = this.owner;
    const isOwn = cwd === ownWorkingDir(dir);
    if (isOwn) mkdirSync(cwd, { recursive: true, mode: 0o755 });
    const scratch = scratchDirs.map((name) => path.join(this.dir, name));
    const own = kubeconfig === undefined ? [] : [kubeconfig];
    for (const file of [...scratch, ...own, spec.terminationLog, ...(isOwn ? [cwd] : [])])
      chownSync(file, uid, gid);
    for (const each of [this.dir, path.dirname(dir), dir]) users.close(each, this.owner);
    const image = users.groupOf(spec.image.rootDir);
    return { by: users, as: users.userOf(record.ip, dir, image === 0 ? [] : [image]) };
  }

  /** Shows the container, at their own places, what it uses: all other files of the machine do not exist for it. */
  async #confine(
    spec: ContainerSpec,
    made: { root: string; cwd: string; kubeconfig: string | undefined; dir: string },
  ): Promise<Launch["confined"]> {
    const { confinement, interpreters, services, record } = this.#options;
    if (!confinement) return undefined;
    const { root, cwd, kubeconfig, dir } = made;
    const isOwn = cwd === ownWorkingDir(dir);
    if (isOwn) mkdirSync(cwd, { recursive: true, mode: 0o755 });
    const user = confinement.userOf(record.ip);
    const [tmp = "", home = "", shm = ""] = scratchDirs.map((name) => path.join(this.dir, name));
    const write = [tmp, home, spec.terminationLog, ...(isOwn ? [cwd] : [])];
    const own = kubeconfig === undefined ? [] : [kubeconfig];
    if (this.owner) for (const file of [...write, shm, ...own]) chownSync(file, user.uid, user.gid);
    const names = interpretersIn(spec.image.config.Labels?.[interpreterLabel]);
    const files = await Promise.all(names.map((name) => interpreters.filesOf(name)));
    const read = [root, spec.image.rootDir, services.dir, ...own, ...files.flat()];
    return {
      by: confinement,
      as: { kind: confinement.kind, ...user, jail: confinement.jails.of(record.uid, spec.name) },
      binds: [
        ...bindsOf({ read, write }),
        ...sharedScratch(this.dir),
        ...volumeBinds(path.join(this.dir, "volumes"), spec.mounts),
      ],
    };
  }

  adopt(record: ProcessRecord): ProcessContainer {
    const left = exitFile(this.dir, record.container);
    const container = ProcessContainer.adopt(record, left, this.#options.clock);
    if (isAlive(record)) this.#track(record.container, container);
    return container;
  }

  #track(name: string, container: ProcessContainer): void {
    this.#running.set(name, container);
    void container.exited.then(
      () => this.#running.get(name) === container && this.#running.delete(name),
    );
  }

  running() {
    return [...this.#running].map(([name, container]) => ({
      podUid: this.#options.record.uid,
      name,
      container,
    }));
  }

  /** The real working directory; one that neither image nor mounts have is made, as runtimes do. */
  async #workingDir(
    spec: ContainerSpec,
    rewriter: PathRewriter,
    root: string,
    dir: string,
  ): Promise<string> {
    const wanted = spec.workingDir || spec.image.config.WorkingDir || "/";
    const real = rewriter.realPath(wanted);
    if (real !== undefined && existsSync(real)) return real;
    if (this.#options.confinement ?? this.#options.users) {
      // Made by the container's own user: links in a volume may lead anywhere.
      const isInVolume = real !== undefined && real.startsWith(`${this.dir}/volumes/`);
      return isInVolume ? real : ownWorkingDir(dir);
    }
    const made = path.join(root, path.posix.normalize(`/${wanted}`));
    await mkdir(made, { recursive: true });
    return made;
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
    const bins = names.flatMap((name) => this.#options.interpreters.binOf(name) ?? []);
    const own = (env["PATH"] ?? hostPath)
      .split(":")
      .flatMap((dir) => [...new Set([rewriter.realPath(dir) ?? dir, dir])]);
    env["PATH"] = [...bins, ...own].join(":");
    env["TMPDIR"] = path.join(this.dir, "tmp");
    const { record, services } = this.#options;
    env["SPRY_SERVICES"] = services.viewOf(record.namespace);
    if (names.some((name) => name.startsWith("node@")))
      env["NODE_OPTIONS"] = services.nodeOptions(env["NODE_OPTIONS"]);
    env["SPRY_ROOT"] = root;
    env["SPRY_TERMINATION_LOG"] = spec.terminationLog;
    return env;
  }

  async close(): Promise<void> {
    await this.#waiting?.end();
    this.#waiting = undefined;
    const running = this.running().map(({ container }) => container);
    for (const container of running) container.kill("SIGKILL");
    // One that still runs could put links in the place of what is being removed.
    const { clock, confinement, record } = this.#options;
    const ends = Promise.all(running.map(({ exited }) => exited));
    if (this.owner) await Promise.race([ends, sleep(clock, endMs)]);
    for (const { pid } of await findByEnvironment(`SPRY_ROOT=${this.dir}/`))
      signalProcess(pid, "SIGKILL");
    // Environments of other users' processes cannot be read without CAP_SYS_PTRACE.
    if (this.#options.users && this.owner)
      for (const pid of await findByUser(this.owner.uid)) signalProcess(pid, "SIGKILL");
    await confinement?.jails.removeWritten(record.uid);
    confinement?.jails.remove(record.uid);
    await removeTree(this.dir);
    this.#options.onClose();
  }
}

/** Where a container works whose own directory is neither in its image nor in a volume. */
const ownWorkingDir = (containerDir: string): string => path.join(containerDir, "work");

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
