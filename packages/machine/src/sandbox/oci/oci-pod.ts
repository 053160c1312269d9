import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import path from "node:path";
import { type Logger, messageOf } from "@spry/kube";
import { interpreterLabel } from "../interpreters.ts";
import { removeTree } from "../remove-tree.ts";
import { exitFile, type PodRecord } from "../records.ts";
import { type ContainerSpec, type Mount, type PodSandbox } from "../sandbox.ts";
import { hasTerminals, noTerminal } from "../terminal.ts";
import { variablesFor } from "../warm/start-options.ts";
import { type WarmPool } from "../warm/warm-pool.ts";
import { type BaseRoots } from "./base-root.ts";
import { type ContainerUser, userOf } from "./container-user.ts";
import { planMounts } from "./handover.ts";
import { type HostFiles } from "./host-files.ts";
import { OciContainer } from "./oci-container.ts";
import { type OciContext } from "./runtime-process.ts";
import { bundleDir, type OciRecord, writeOciRecord } from "./oci-records.ts";
import { nameMounts } from "./name-files.ts";
import { bindMount, type OciMount, type OciSpec, ociSpecOf } from "./oci-spec.ts";
import { prepareRoot } from "./root-file-system.ts";
import { VolumeParts } from "./volume-parts.ts";
import { maxEnvironment, type OciSuccessor, type WarmContainer } from "./warm-container.ts";

export interface OciPodOptions extends OciContext {
  dir: string;
  record: PodRecord;
  bases: BaseRoots;
  hostFiles: HostFiles;
  overlay: boolean;
  /** Path of its network namespace; nothing where it uses the machine's. */
  networkNamespace?: string | undefined;
  /** What may become its container; it is this Pod's alone. */
  waiting?: WarmContainer | undefined;
  /** Where starts are counted, if containers may wait for Pods like this one. */
  pool?: WarmPool<WarmContainer> | undefined;
  log: Logger;
  onClose: () => Promise<void>;
}

/** How a container is to be started. */
interface Description {
  oci: OciSpec;
  user: ContainerUser;
  /** Of its root directory, topmost first. */
  layers: string[];
  rootMounts: OciMount[];
  /** From this machine and from volumes, in their order. */
  mounts: OciMount[];
}

export class OciPod implements PodSandbox {
  readonly ip: string;
  readonly dir: string;
  readonly #options: OciPodOptions;
  readonly #running = new Map<string, OciContainer>();
  #waiting: WarmContainer | undefined;

  constructor(options: OciPodOptions) {
    this.ip = options.record.ip;
    this.dir = options.dir;
    this.#options = options;
    this.#waiting = options.waiting;
  }

  async start(wanted: ContainerSpec): Promise<OciContainer> {
    const tty = wanted.tty === true && hasTerminals();
    if (wanted.tty && !tty) await appendFile(wanted.logFile, noTerminal, { mode: 0o600 });
    const spec = { ...wanted, tty };
    return (await this.#takeOver(spec)) ?? this.#startCold(spec);
  }

  /** An empty directory for what the runtime runs. */
  async #emptyBundle({ name }: ContainerSpec): Promise<string> {
    const bundle = bundleDir(this.dir, name);
    // What an earlier run has written may be much.
    if (existsSync(bundle)) await removeTree(bundle);
    rmSync(exitFile(this.dir, name), { force: true });
    mkdirSync(bundle, { recursive: true, mode: 0o700 });
    return bundle;
  }

  /**
   * The container that has waited for this Pod, as its own; undefined if there is none, or not one that was started as this
   * one has to be. It is used once: a second start in the same Pod is an ordinary one.
   */
  async #takeOver(spec: ContainerSpec): Promise<OciContainer | undefined> {
    const { pool } = this.#options;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    let taken: OciContainer | undefined;
    try {
      const { rootDir, config } = spec.image;
      const cwd = path.join(rootDir, spec.workingDir || config.WorkingDir || "/");
      const variables = pool && variablesFor(spec, { cwd, env: spec.env }, "");
      if (!pool || !variables) return undefined;
      const { user } = this.#layersOf(spec);
      const kind = { variables, confined: { isolation: spec.isolation, user } };
      const runtime = pool.runtimeOf(spec.image);
      const fits = runtime && waiting?.key === pool.keyOf({ runtime, ...kind });
      if (fits) taken = await this.#become(waiting, spec, pool);
      pool.started(spec.image, kind, taken !== undefined);
      return taken;
    } finally {
      if (!taken) await waiting?.end();
    }
  }

  async #become(
    waiting: WarmContainer,
    spec: ContainerSpec,
    pool: WarmPool<WarmContainer>,
  ): Promise<OciContainer | undefined> {
    const { log } = this.#options;
    const bundle = await this.#emptyBundle(spec);
    const parts = new VolumeParts(this.dir, bundle);
    try {
      const successor = await this.#successorOf(waiting, spec, bundle, parts).catch(
        () => undefined,
      );
      // Whatever this Pod lacks or has too much of: others go on being warm, and an ordinary start says what it is.
      if (!successor) return undefined;
      const { ready, cpuBefore } = await waiting.becomes(successor);
      return this.#taken(waiting, spec, { bundle, ready, cpuBefore });
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a warm container could not be used, starting another");
      await waiting.end();
      pool.giveUp(waiting.key);
      return undefined;
    } finally {
      parts.close();
    }
  }

  /** Undefined for a container that has to be started. */
  async #successorOf(
    { id }: WarmContainer,
    spec: ContainerSpec,
    bundle: string,
    parts: VolumeParts,
  ): Promise<OciSuccessor | undefined> {
    const { logFile, image, argv } = spec;
    const { Entrypoint = [], Cmd = [], WorkingDir = "" } = image.config;
    const [, program = "/"] = Entrypoint;
    const { oci, layers, rootMounts, mounts } = await this.#describe(id, spec, bundle, parts);
    const kept = [path.dirname(program)];
    const plan = parts.isEmpty ? planMounts(rootMounts, mounts, layers, kept) : undefined;
    // The waiting process read the machine's accounts and runs the machine's interpreter, not those of an image.
    const isOwn = existsSync(path.join(image.rootDir, "etc/passwd")) || layers.length === 1;
    const isLarge = JSON.stringify(oci.process.env).length > maxEnvironment;
    if (!plan || isOwn || isLarge) return undefined;
    const args = argv.slice(Entrypoint.length + Cmd.length);
    const ended = exitFile(this.dir, spec.name);
    return { bundle, oci, plan, directory: WorkingDir || "/", args, logFile, exitFile: ended };
  }

  #taken(
    waiting: WarmContainer,
    spec: ContainerSpec,
    made: { bundle: string; ready: Promise<void>; cpuBefore: number },
  ): OciContainer {
    const { id, pid, startTicks, monitor, exited } = waiting;
    const { cpuLimit, startCpuLimit } = spec.isolation ?? {};
    const record = {
      container: spec.name,
      run: spec.run,
      id,
      pid,
      startTicks,
      monitor,
      startedAt: this.#options.clock.now(),
      cpuLimit: startCpuLimit === undefined ? undefined : cpuLimit,
      cpuBefore: made.cpuBefore,
    };
    const { bundle, ready } = made;
    const ends = { exited, ready };
    const taken = OciContainer.takeOver(record, bundle, this.#options, ends, spec.keepExitCode);
    writeOciRecord(this.dir, record);
    this.#track(taken);
    return taken;
  }

  async #startCold(spec: ContainerSpec): Promise<OciContainer> {
    const { tty } = spec;
    const bundle = await this.#emptyBundle(spec);
    const id = randomBytes(32).toString("hex");
    const parts = new VolumeParts(this.dir, bundle);
    try {
      await this.#describe(id, spec, bundle, parts);
      const { name: container, run, logFile } = spec;
      const left = spec.keepExitCode ? exitFile(this.dir, container) : undefined;
      const input = spec.stdin && { file: path.join(bundle, "stdin"), mode: spec.stdin };
      const { cpuLimit, startCpuLimit } = spec.isolation ?? {};
      const later = startCpuLimit === undefined ? {} : { cpuLimit };
      const named = { container, run, id, bundle, parts };
      const launch = { ...named, logFile, exitFile: left, input, tty, ...later };
      const started = await OciContainer.start(launch, this.#options);
      if (started.record.pid > 0) writeOciRecord(this.dir, started.record);
      this.#track(started);
      return started;
    } catch (error) {
      await this.#options.runtime.delete(id);
      await this.#options.cgroups.remove(id);
      throw error;
    } finally {
      parts.close();
    }
  }

  adopt(record: OciRecord): OciContainer {
    const { container } = record;
    const bundle = bundleDir(this.dir, container);
    const left = exitFile(this.dir, container);
    const adopted = OciContainer.adopt(record, bundle, left, this.#options);
    this.#track(adopted);
    return adopted;
  }

  #track(container: OciContainer): void {
    const name = container.record.container;
    this.#running.set(name, container);
    void container.exited.then(
      () => this.#running.get(name) === container && this.#running.delete(name),
    );
  }

  running(): OciContainer[] {
    return [...this.#running.values()];
  }

  #layersOf({ image, isolation }: ContainerSpec) {
    const { rootDir, config } = image;
    const interpreter = config.Labels?.[interpreterLabel];
    const base =
      interpreter !== undefined && !bringsRoot(rootDir)
        ? this.#options.bases.of(interpreter)
        : undefined;
    const layers = base === undefined ? [rootDir] : [rootDir, base];
    return { interpreter, base, layers, user: userOf(config.User ?? "", isolation, layers) };
  }

  /** Writes `config.json` into the bundle. */
  async #describe(
    id: string,
    spec: ContainerSpec,
    bundle: string,
    volumeParts: VolumeParts,
  ): Promise<Description> {
    const { bases, cgroups, overlay, record, networkNamespace } = this.#options;
    const { rootDir } = spec.image;
    const { interpreter, base, layers, user } = this.#layersOf(spec);
    // Written by the container's own user.
    chownSync(spec.terminationLog, user.uid, user.gid);
    const rootMounts = await prepareRoot({ bundle, imageRoot: rootDir, base, overlay });
    const volumes = volumeMounts(spec.mounts, volumeParts);
    const destinations = volumes.map(({ destination }) => destination);
    const parts =
      interpreter !== undefined && base !== undefined
        ? await bases.partsBelow(interpreter, destinations)
        : [];
    // An interpreter of the machine's /tmp is there, too, where a volume is mounted at /tmp.
    const hidden = parts.map((file) => bindMount(`${base}${file}`, file, true));
    const termination = spec.mounts.find(({ source }) => source === spec.terminationLog);
    const hostMounts = await this.#hostMounts(base !== undefined);
    const oci = ociSpecOf({
      spec,
      user,
      rootMounts,
      cgroupMounts: cgroups.mounts(id),
      hostMounts,
      volumeMounts: [...volumes, ...hidden],
      cgroupsPath: cgroups.pathOf(id),
      cgroupVersion: cgroups.version,
      networkNamespace,
      env: {
        // With others on the same network, only the Pod's own address is its own.
        ...(record.network !== "own" && { SERVER_HOST: this.ip }),
        SPRY_READY_FD: "3",
        ...(termination && { SPRY_TERMINATION_LOG: termination.mountPath }),
      },
    });
    // Environments hold secrets.
    writeFileSync(path.join(bundle, "config.json"), JSON.stringify(oci), { mode: 0o600 });
    return { oci, user, layers, rootMounts, mounts: [...hostMounts, ...volumes, ...hidden] };
  }

  /** Files of the Pod that come from the machine: names, and how npm reaches its registry. */
  async #hostMounts(hasBase: boolean): Promise<OciMount[]> {
    const names = nameMounts(this.dir);
    if (!hasBase) return names;
    return [...names, ...(await this.#options.hostFiles.mounts(path.join(this.dir, "etc")))];
  }

  async close(): Promise<void> {
    await this.#waiting?.end();
    this.#waiting = undefined;
    for (const container of this.#running.values()) container.kill("SIGKILL");
    await Promise.all([...this.#running.values()].map(({ exited }) => exited));
    await removeTree(this.dir);
    await this.#options.onClose();
  }
}

/** An image with programs of its own is used as it is. */
function bringsRoot(rootDir: string): boolean {
  return ["bin/sh", "usr/bin", "usr/local/bin"].some((name) =>
    existsSync(path.join(rootDir, name)),
  );
}

function volumeMounts(mounts: readonly Mount[], parts: VolumeParts): OciMount[] {
  return mounts
    .map(({ mountPath, source, readOnly = false }) => {
      const destination = path.posix.resolve("/", mountPath);
      if (destination === "/")
        throw new Error("a volume cannot be mounted at /: choose a directory");
      return bindMount(parts.sourceOf(source), destination, readOnly);
    })
    .sort((a, b) => a.destination.split("/").length - b.destination.split("/").length);
}
