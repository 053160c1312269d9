import { RegistryFailure } from "./registry-failure.ts";

interface Limits {
  /** Of all tenants together. */
  total: number;
  /** Of one, however much is free; by default no other limit than the fair share. */
  each?: number;
}

/**
 * Something that there is a limited amount of, in bytes or pieces. Each tenant may have as much as it leaves free to
 * others (the "dynamic thresholds" of shared switch buffers, Choudhury and Hahne 1998, with the factor 1): one gets half at most, two a
 * third each, so that something is left for the next one, however many have taken what they could.
 */
export class FairShares {
  readonly #limits: Limits;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Takes an amount; undefined as the tenant is the platform, which only the total limits. Throws TOOMANYREQUESTS. */
  take(tenant: string | undefined, amount: number, what: string): void {
    const { total, each = total } = this.#limits;
    const free = total - this.#total;
    const own = this.#ownOf(tenant) + amount;
    if (amount > free || (tenant !== undefined && own > Math.min(free, each)))
      throw new RegistryFailure("TOOMANYREQUESTS", `${what}; retry later`, {
        headers: { "retry-after": "1" },
      });
    this.#add(tenant, amount);
  }

  giveBack(tenant: string | undefined, amount: number): void {
    this.#add(tenant, -amount);
  }

  #ownOf(tenant: string | undefined): number {
    return tenant === undefined ? 0 : (this.#taken.get(tenant) ?? 0);
  }

  #add(tenant: string | undefined, amount: number): void {
    this.#total += amount;
    if (tenant === undefined) return;
    const own = this.#ownOf(tenant) + amount;
    if (own === 0) this.#taken.delete(tenant);
    else this.#taken.set(tenant, own);
  }
}
