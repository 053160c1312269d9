import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { names } from "@spry/function";
import { writeDurably } from "../durable-file.ts";
import { type NamespaceUses } from "../namespace-uses.ts";
import { type RepositoryStore } from "../repository-store.ts";

/**
 * Whose a namespace's repositories are, by the namespace's uid: a namespace that was deleted and made again under its name
 * has nothing of what was there before. A file each, `<dir>/owners/<namespace>`.
 */
export class Owners {
  readonly #dir: string;
  readonly #repositories: RepositoryStore;
  readonly #scratch: string;
  readonly #known = new Map<string, string>();
  readonly #claims = new Map<string, Promise<void>>();
  /** Changes of repositories that are being made, by namespace. */
  readonly #changes = new Map<string, Set<Promise<unknown>>>();
  readonly #uses: NamespaceUses;

  constructor(dir: string, scratch: string, repositories: RepositoryStore, uses: NamespaceUses) {
    this.#uses = uses;
    this.#dir = join(dir, "owners");
    this.#scratch = scratch;
    this.#repositories = repositories;
    mkdirSync(this.#dir, { recursive: true });
  }

  ownerOf(namespace: string): string | undefined {
    const known = this.#known.get(namespace);
    if (known !== undefined) return known;
    try {
      const uid = readFileSync(join(this.#dir, namespace), "utf8");
      this.#known.set(namespace, uid);
      return uid;
    } catch {
      return undefined;
    }
  }

  /**
   * Makes the repositories of the namespace its own; those of an earlier one of its name go. `before` is the owner at the time
   * when the cluster was asked: false, and nothing changes, when another has become the owner since.
   */
  async claim(namespace: string, uid: string, before: string | undefined): Promise<boolean> {
    // One at a time for each namespace.
    for (let other; (other = this.#claims.get(namespace));) await other;
    const owner = this.ownerOf(namespace);
    if (owner === uid) return true;
    if (owner !== before) return false;
    const claim = this.#take(namespace, uid, owner).finally(() => this.#claims.delete(namespace));
    this.#claims.set(namespace, claim);
    await claim;
    return true;
  }

  /** Makes a change of a namespace's repositories. Until it has ended, the owner, which it is given, stays the owner. */
  async change<T>(
    namespace: string,
    change: (owner: string | undefined) => T | Promise<T>,
  ): Promise<T> {
    for (let claim; (claim = this.#claims.get(namespace));) await claim.catch(() => {});
    // From here to the entry in the list there is no pause in which a claim could begin.
    const begin = async () => change(this.ownerOf(namespace));
    const running = begin();
    const changes = this.#changes.get(namespace) ?? new Set();
    this.#changes.set(namespace, changes.add(running));
    try {
      return await running;
    } finally {
      changes.delete(running);
      if (changes.size === 0) this.#changes.delete(namespace);
    }
  }

  async #take(namespace: string, uid: string, owner: string | undefined): Promise<void> {
    const changes = [...(this.#changes.get(namespace)?.values() ?? [])];
    await Promise.allSettled(changes);
    if (owner !== undefined) {
      await this.#repositories.removeBelow(names.repositories(namespace));
      this.#uses.forget(names.repositories(namespace));
    }
    await writeDurably(join(this.#dir, namespace), uid, this.#scratch);
    this.#known.set(namespace, uid);
  }
}
