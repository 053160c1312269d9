import {
  deepEqual,
  type LabelSelector,
  type Logger,
  messageOf,
  requirementsOf,
  matchesLabels,
} from "@spry/kube";
import { StaleWriteError, type Store } from "../store/store.ts";
import { type PolicyRule } from "./policy-rule.ts";
import { rbacGroup } from "./rule-resolver.ts";

const clusterRoles = `${rbacGroup}/clusterroles`;

/**
 * Fills ClusterRoles that have an `aggregationRule` with the rules of those that it selects, in the
 * order of their names. That is a controller's work in a cluster; here it needs no copy of all roles.
 */
export class AggregationKeeper {
  readonly #store: Store;
  readonly #log: Logger;
  #running: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  #stop: () => void = () => {};

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Resolves when all are filled that are there at the start. */
  async start(): Promise<void> {
    this.#stop = this.#store.watch(clusterRoles, this.#store.revision, () => this.#wake());
    this.#wake();
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stop();
    this.#stopped = true;
    await this.#running;
  }

  #wake(): void {
    this.#again = true;
    // Not within the commit that has announced the change.
    this.#running ??= Promise.resolve()
      .then(() => this.#passes())
      .finally(() => {
        this.#running = undefined;
        if (this.#again && !this.#stopped) this.#wake();
      });
  }

  async #passes(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        await this.#fill();
      } catch (error) {
        if (error instanceof StaleWriteError) this.#again = true;
        else this.#log.error({ error: messageOf(error) }, "aggregating ClusterRoles failed");
      }
    }
  }

  async #fill(): Promise<void> {
    const roles = this.#store.list(clusterRoles);
    const writes = roles.flatMap((stored) => {
      const { aggregationRule, rules, metadata } = stored.object;
      const { clusterRoleSelectors } = (aggregationRule ?? {}) as {
        clusterRoleSelectors?: LabelSelector[];
      };
      if (!clusterRoleSelectors || metadata.deletionTimestamp) return [];
      const others = roles.filter(({ name }) => name !== stored.name);
      const wanted: PolicyRule[] = [];
      for (const selector of clusterRoleSelectors) {
        const requirements = requirementsOf(selector);
        for (const { object } of others) {
          if (!matchesLabels(requirements, object.metadata.labels)) continue;
          for (const rule of (object.rules as PolicyRule[] | null | undefined) ?? [])
            if (!wanted.some((known) => deepEqual(known, rule))) wanted.push(rule);
        }
      }
      if (deepEqual(rules ?? [], wanted)) return [];
      return [this.#store.put(stored, stored, { ...stored.copy(), rules: wanted })];
    });
    await Promise.all(writes);
  }
}
