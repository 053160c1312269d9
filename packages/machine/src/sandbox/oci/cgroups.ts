import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import path from "node:path";
import { type Clock, sleep } from "@spry/kube";
import { signalProcess } from "../processes.ts";
import { cpuPeriodUs, cpuQuotaOf, type OciMount } from "./oci-spec.ts";

/** The end of a process takes processor time, which a container at its limit, or a busy machine, has little of. */
const removeAttempts = 200;
const removePauseMs = 25;

/**
 * The control groups of one sandbox, in version 1 (a tree per controller) or 2 (one tree): what
 * containers use, whether memory ran out, and their removal. The runtime makes them and sets limits.
 */
export class Cgroups {
  readonly version: 1 | 2;
  /** Below the root of every tree, for example `/spry-1f2e3d4c`. */
  readonly #parent: string;
  readonly #root: string;
  readonly #clock: Clock;
  /** Containers that have groups here, or are about to get them. */
  readonly #inUse = new Set<string>();

  constructor(name: string, clock: Clock, root = "/sys/fs/cgroup") {
    this.#parent = `/${name}`;
    this.#root = root;
    this.#clock = clock;
    this.version = existsSync(path.join(root, "cgroup.controllers")) ? 2 : 1;
  }

  /** To be said before a container's groups are made, so that their parent stays. */
  use(id: string): void {
    this.#inUse.add(id);
  }

  /** As the runtime's specification wants it. */
  pathOf(id: string): string {
    return `${this.#parent}/${id}`;
  }

  /**
   * What lets programs see their own limits: Node.js sizes its heap by them. In version 1 only these
   * controllers are shown; mounting them all fails on systems that have both versions.
   */
  mounts(id: string): OciMount[] {
    const options = ["nosuid", "noexec", "nodev", "relatime", "ro"];
    const destination = "/sys/fs/cgroup";
    if (this.version === 2) return [{ destination, type: "cgroup", source: "cgroup", options }];
    const shown = ["memory", "cpu", "cpuacct"].filter((name) =>
      existsSync(path.join(this.#root, name)),
    );
    return [
      {
        destination,
        type: "tmpfs",
        source: "tmpfs",
        options: ["nosuid", "noexec", "nodev", "mode=755", "size=64k"],
      },
      ...shown.map((name) => ({
        destination: `${destination}/${name}`,
        type: "bind",
        source: path.join(this.#root, name, this.pathOf(id)),
        options: ["bind", ...options],
      })),
    ];
  }

  /** From now on. One that is gone needs none. */
  limitCpu(id: string, cores: number): void {
    const quota = cpuQuotaOf(cores);
    try {
      if (this.version === 2) this.#write("", id, "cpu.max", `${quota} ${cpuPeriodUs}`);
      else this.#write("cpu", id, "cpu.cfs_quota_us", String(quota));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }

  /** CPU time, and memory without what the kernel can drop at any time; undefined when it is gone. */
  usage(id: string): { cpuNanoseconds: number; memoryBytes: number } | undefined {
    try {
      if (this.version === 2) {
        const cpu = this.#fields("", id, "cpu.stat").get("usage_usec") ?? 0;
        const cache = this.#fields("", id, "memory.stat").get("inactive_file") ?? 0;
        const memory = Number(this.#read("", id, "memory.current"));
        return { cpuNanoseconds: cpu * 1000, memoryBytes: Math.max(0, memory - cache) };
      }
      const cache = this.#fields("memory", id, "memory.stat").get("total_inactive_file") ?? 0;
      const memory = Number(this.#read("memory", id, "memory.usage_in_bytes"));
      const cpuNanoseconds = Number(this.#read("cpuacct", id, "cpuacct.usage"));
      return { cpuNanoseconds, memoryBytes: Math.max(0, memory - cache) };
    } catch {
      return undefined;
    }
  }

  /** How many processes the kernel has ended because the memory limit was reached. */
  oomKills(id: string): number {
    try {
      const fields =
        this.version === 2
          ? this.#fields("", id, "memory.events")
          : this.#fields("memory", id, "memory.oom_control");
      return fields.get("oom_kill") ?? 0;
    } catch {
      return 0;
    }
  }

  /** What runs in it; nothing when it is gone. */
  pids(id: string): number[] {
    for (const tree of this.#trees()) {
      const pids = pidsOf(path.join(tree, this.pathOf(id)));
      if (pids.length > 0) return pids;
    }
    return [];
  }

  /** Every container that has a group in some tree. */
  list(): string[] {
    const ids = this.#trees().flatMap((tree) => directoriesOf(path.join(tree, this.#parent)));
    return [...new Set(ids)];
  }

  /** Ends what is still in a container's groups, and removes them; after the last one their parent. */
  async remove(id: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const left = await this.#tryRemove(id);
      if (left.length === 0) break;
      if (attempt >= removeAttempts)
        throw new Error(`removing cgroup ${left.join(", ")}: processes in it do not end`);
      await sleep(this.#clock, removePauseMs);
    }
    this.#inUse.delete(id);
    this.removeUnusedParent();
  }

  async #tryRemove(id: string): Promise<string[]> {
    const left: string[] = [];
    for (const tree of this.#trees()) {
      const dir = path.join(tree, this.pathOf(id));
      if (!existsSync(dir)) continue;
      for (const pid of pidsOf(dir)) signalProcess(pid, "SIGKILL");
      for (const child of directoriesOf(dir)) await rmdir(path.join(dir, child)).catch(() => {});
      await rmdir(dir).catch(() => left.push(dir));
    }
    return left;
  }

  /** In one go: no container can be started meanwhile. */
  removeUnusedParent(): void {
    if (this.#inUse.size > 0) return;
    for (const tree of this.#trees()) {
      try {
        rmdirSync(path.join(tree, this.#parent));
      } catch {
        // Not there, or another program of the same data directory has just begun to use it.
      }
    }
  }

  #trees(): string[] {
    if (this.version === 2) return [this.#root];
    return directoriesOf(this.#root).map((name) => path.join(this.#root, name));
  }

  #read(controller: string, id: string, file: string): string {
    return readFileSync(path.join(this.#root, controller, this.pathOf(id), file), "latin1");
  }

  /** Only to a file that exists: writing to a deleted group must not create one. */
  #write(controller: string, id: string, file: string, text: string): void {
    const at = path.join(this.#root, controller, this.pathOf(id), file);
    writeFileSync(at, text, { flag: "r+" });
  }

  #fields(controller: string, id: string, file: string): Map<string, number> {
    const lines = this.#read(controller, id, file).trim().split("\n");
    return new Map(
      lines.map((line) => {
        const [name = "", value] = line.split(" ");
        return [name, Number(value)];
      }),
    );
  }
}

/** None of one that is gone. Links (`cpu` → `cpu,cpuacct`) are left out: they would be looked at twice. */
function directoriesOf(dir: string): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

/** None if the group does not exist any more: another process may remove it at any moment. */
function pidsOf(dir: string): number[] {
  try {
    const text = readFileSync(path.join(dir, "cgroup.procs"), "latin1");
    return text.split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
