import { type Clock, type KubeObject } from "@spry/kube";

/**
 * A controller's own writes that its cache has not shown yet. Deciding on such a cache would make
 * Pods twice, or delete one more than asked; so a pass waits until everything expected was seen.
 *
 * An expectation also ends by age: should an object come and go unseen, the owner is not stuck.
 */
export class Expectations {
  readonly #clock: Clock;
  readonly #owners = new Map<string, { uids: Map<string, "seen" | "gone">; since: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** After a successful write: `seen` for an object created, `gone` for one deleted. */
  expect(owner: string, uid: string, outcome: "seen" | "gone"): void {
    const entry = this.#owners.get(owner) ?? { uids: new Map(), since: 0 };
    entry.uids.set(uid, outcome);
    entry.since = this.#clock.elapsed();
    this.#owners.set(owner, entry);
  }

  /**
   * Whether the cache, which holds these children of the owner, shows all of its own writes.
   */
  fulfilled(owner: string, children: readonly KubeObject[]): boolean {
    const entry = this.#owners.get(owner);
    if (!entry) return true;
    const shown = new Map(children.map(({ metadata }) => [metadata.uid, metadata]));
    for (const [uid, outcome] of entry.uids) {
      const child = shown.get(uid);
      const isGone = !child || child.deletionTimestamp !== undefined;
      if (outcome === "seen" ? child !== undefined : isGone) entry.uids.delete(uid);
    }
    const expired = this.#clock.elapsed() - entry.since > expiryMs;
    if (entry.uids.size > 0 && !expired) return false;
    this.#owners.delete(owner);
    return true;
  }

  forget(owner: string): void {
    this.#owners.delete(owner);
  }
}

export const expiryMs = 30_000;
