import { randomBytes } from "node:crypto";
import { chownSync, existsSync } from "node:fs";
import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { interpreterLabel } from "../interpreters.ts";
import { exitFile, type PodRecord } from "../records.ts";
import { type ContainerSpec, type Mount, type PodSandbox } from "../sandbox.ts";
import { hasTerminals, noTerminal } from "../terminal.ts";
import { type BaseRoots } from "./base-root.ts";
import { userOf } from "./container-user.ts";
import { type HostFiles } from "./host-files.ts";
import { OciContainer } from "./oci-container.ts";
import { type OciSurroundings } from "./runtime-process.ts";
import { bundleDir, type OciRecord, writeOciRecord } from "./oci-records.ts";
import { nameMounts } from "./name-files.ts";
import { bindMount, type OciMount, ociSpecOf } from "./oci-spec.ts";
import { prepareRoot } from "./root-file-system.ts";
import { VolumeParts } from "./volume-parts.ts";

export interface OciPodOptions extends OciSurroundings {
  dir: string;
  record: PodRecord;
  bases: BaseRoots;
  hostFiles: HostFiles;
  overlay: boolean;
  /** Path of its network namespace; nothing where it uses the machine's. */
  networkNamespace?: string | undefined;
  onClose: () => Promise<void>;
}

export class OciPod implements PodSandbox {
  readonly ip: string;
  readonly dir: string;
  readonly #options: OciPodOptions;
  readonly #running = new Map<string, OciContainer>();

  constructor(options: OciPodOptions) {
    this.ip = options.record.ip;
    this.dir = options.dir;
    this.#options = options;
  }

  async start(wanted: ContainerSpec): Promise<OciContainer> {
    const tty = wanted.tty === true && hasTerminals();
    if (wanted.tty && !tty) await appendFile(wanted.logFile, noTerminal, { mode: 0o600 });
    const spec = { ...wanted, tty };
    const bundle = bundleDir(this.dir, spec.name);
    await rm(bundle, { recursive: true, force: true });
    await rm(exitFile(this.dir, spec.name), { force: true });
    await mkdir(bundle, { recursive: true, mode: 0o700 });
    const id = randomBytes(32).toString("hex");
    const parts = new VolumeParts(this.dir, bundle);
    try {
      await this.#writeConfig(id, spec, bundle, parts);
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

  async #writeConfig(
    id: string,
    spec: ContainerSpec,
    bundle: string,
    volumeParts: VolumeParts,
  ): Promise<void> {
    const { bases, cgroups, overlay, record, networkNamespace } = this.#options;
    const { rootDir, config } = spec.image;
    const interpreter = config.Labels?.[interpreterLabel];
    const base =
      interpreter !== undefined && !bringsRoot(rootDir) ? bases.of(interpreter) : undefined;
    const layers = base === undefined ? [rootDir] : [rootDir, base];
    const user = userOf(config.User ?? "", spec.isolation, layers);
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
    const oci = ociSpecOf({
      spec,
      user,
      rootMounts,
      cgroupMounts: cgroups.mounts(id),
      hostMounts: await this.#hostMounts(base !== undefined),
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
    await writeFile(path.join(bundle, "config.json"), JSON.stringify(oci), { mode: 0o600 });
  }

  /** Files of the Pod that come from the machine: names, and how npm reaches its registry. */
  async #hostMounts(hasBase: boolean): Promise<OciMount[]> {
    const names = nameMounts(this.dir);
    if (!hasBase) return names;
    return [...names, ...(await this.#options.hostFiles.mounts(path.join(this.dir, "etc")))];
  }

  async close(): Promise<void> {
    for (const container of this.#running.values()) container.kill("SIGKILL");
    await Promise.all([...this.#running.values()].map(({ exited }) => exited));
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
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
