import { readdirSync, readlinkSync, statSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { type Clock } from "@spry/kube";

/** A container whose open files are counted. */
export interface Guarded {
  readonly id: string;
  /** Kills it; the reason is in its status. */
  endFor(reason: string): void;
}

/** As many as the kernel gives a user by default, and far more than a program needs. */
export const maxInotifyInstances = 128;
/** Of all its processes. */
const maxOpenFiles = 262_144;
const lookMs = 1_000;
/** Links read between two turns of the event loop. */
const batch = 200;
/** A look at a container is at most this part of the time: one that took 10 ms is not repeated for 200 ms. */
const restFactor = 20;

/**
 * Keeps one container from using up what the kernel gives each user: inotify instances, and open files. The kernel counts for all
 * containers together, since their users are the same; so each container is counted here, and ended if it takes more than its share.
 */
export class DescriptorGuard {
  readonly #containers: () => Iterable<Guarded>;
  readonly #pidsOf: (id: string) => number[];
  readonly #clock: Clock;
  readonly #notBefore = new Map<string, number>();
  #cancel: () => void = () => {};
  #isClosed = false;

  constructor(containers: () => Iterable<Guarded>, pidsOf: (id: string) => number[], clock: Clock) {
    this.#containers = containers;
    this.#pidsOf = pidsOf;
    this.#clock = clock;
  }

  open(): void {
    this.#cancel = this.#clock.after(lookMs, () => {
      void this.#look().finally(() => this.#isClosed || this.open());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  async #look(): Promise<void> {
    const all = [...this.#containers()];
    const ids = new Set(all.map(({ id }) => id));
    for (const id of this.#notBefore.keys()) if (!ids.has(id)) this.#notBefore.delete(id);
    for (const container of all) {
      const begin = this.#clock.now();
      if (begin < (this.#notBefore.get(container.id) ?? 0)) continue;
      const why = await whyTooMuch(this.#pidsOf(container.id));
      if (why !== undefined) container.endFor(why);
      const now = this.#clock.now();
      this.#notBefore.set(container.id, now + (now - begin) * restFactor);
      await turn();
    }
  }
}

/** Undefined for processes that are within their share. */
async function whyTooMuch(pids: readonly number[]): Promise<string | undefined> {
  const counts = pids.map((pid) => ({ pid, files: openFilesOf(pid) }));
  const files = counts.reduce((sum, each) => sum + each.files, 0);
  if (files <= maxInotifyInstances) return undefined;
  if (files > maxOpenFiles)
    return `it had more than ${maxOpenFiles} open files, the limit for a container`;
  let instances = 0;
  let read = 0;
  for (const { pid } of counts)
    for (const name of namesIn(`/proc/${pid}/fd`)) {
      if (++read % batch === 0) await turn();
      if (!isInotify(`/proc/${pid}/fd/${name}`)) continue;
      if (++instances > maxInotifyInstances)
        return `it had more than ${maxInotifyInstances} inotify instances (watchers of files), the limit for a container`;
    }
  return undefined;
}

/** Since Linux 6.2 the directory's size is the number. */
function openFilesOf(pid: number): number {
  try {
    return statSync(`/proc/${pid}/fd`).size || namesIn(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function isInotify(file: string): boolean {
  try {
    return readlinkSync(file) === "anon_inode:inotify";
  } catch {
    return false;
  }
}
