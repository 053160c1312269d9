import { type Job } from "@spry/kube";

/**
 * Builds that were begun by an earlier controller. Where one of them fails, that may be because the platform was stopped or
 * killed under it: it is built again at once, and does not count as a failure. Each restart allows that once for each build.
 */
export class InheritedBuilds {
  readonly #uids = new Set<string>();

  /** The Jobs that were there when this controller started. */
  remember(jobs: Iterable<Job>): void {
    for (const { metadata } of jobs) if (metadata.uid) this.#uids.add(metadata.uid);
  }

  has({ metadata }: Job): boolean {
    return this.#uids.has(metadata.uid ?? "");
  }

  /** The Job is gone. */
  forget({ metadata }: Job): void {
    this.#uids.delete(metadata.uid ?? "");
  }
}
