/** What one owner holds. */
interface Account {
  bytes: number;
  leases: Set<Lease>;
}

/** Memory that one request holds. */
export class Lease {
  readonly owner: string;
  bytes = 0;
  isUsed = false;
  readonly #budget: MemoryBudget;
  /** How it gives its memory up; undefined when it has. */
  #giveUp: (() => void) | undefined;

  /** Made by `MemoryBudget.open`. */
  constructor(budget: MemoryBudget, owner: string, giveUp: () => void) {
    this.#budget = budget;
    this.owner = owner;
    this.#giveUp = giveUp;
  }

  /** Asks for more bytes. Returns false if the budget has no room for them; this lease has then been given up. */
  grow(bytes: number): boolean {
    if (!this.#giveUp) return false;
    this.#budget.add(this, bytes);
    return this.#giveUp !== undefined;
  }

  /**
   * What it holds is in use from here on, with so much more: it is not taken away any more. False: its owner has half of all
   * memory in use already, and this lease has been given up.
   */
  use(more: number): boolean {
    if (!this.grow(more)) return false;
    if (!this.#budget.mayUse(this)) {
      this.revoke();
      return false;
    }
    this.isUsed = true;
    return true;
  }

  get canBeTaken(): boolean {
    return this.#giveUp !== undefined && !this.isUsed;
  }

  /** Ends it from outside. */
  revoke(): void {
    const giveUp = this.#giveUp;
    this.#giveUp = undefined;
    this.close();
    giveUp?.();
  }

  close(): void {
    this.#budget.close(this);
  }
}

/**
 * Memory that requests of all owners share. When it is used up, the owner with the most loses the largest of what can be taken
 * away, whichever owner has asked: an owner with little always gets what it asks for.
 */
export class MemoryBudget {
  readonly #accounts = new Map<string, Account>();
  readonly #max: number;
  /** An owner with no more than that loses nothing. */
  readonly #small: number;
  #bytes = 0;

  /** In bytes. */
  constructor(max: number) {
    this.#max = max;
    this.#small = max / 64;
  }

  /** Of all owners. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `giveUp` is called when what the lease holds is taken away. */
  open(owner: string, giveUp: () => void): Lease {
    return new Lease(this, owner, giveUp);
  }

  add(lease: Lease, bytes: number): void {
    let account = this.#accounts.get(lease.owner);
    if (!account) this.#accounts.set(lease.owner, (account = { bytes: 0, leases: new Set() }));
    account.leases.add(lease);
    lease.bytes += bytes;
    account.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#max) {
      const victim = this.#victim();
      if (!victim) return;
      victim.revoke();
    }
  }

  /** Whether the owner may have what this lease holds in use, together with what it has already. */
  mayUse(lease: Lease): boolean {
    let bytes = lease.bytes;
    for (const each of this.#accounts.get(lease.owner)?.leases ?? [])
      if (each.isUsed) bytes += each.bytes;
    return bytes <= Math.max(this.#max / 2, this.#small);
  }

  close(lease: Lease): void {
    const account = this.#accounts.get(lease.owner);
    if (!account?.leases.delete(lease)) return;
    account.bytes -= lease.bytes;
    this.#bytes -= lease.bytes;
    if (account.leases.size === 0) this.#accounts.delete(lease.owner);
  }

  /** The largest that can be taken away of the owner with the most. */
  #victim(): Lease | undefined {
    const accounts = [...this.#accounts.values()]
      .filter(({ bytes }) => bytes > this.#small)
      .sort((a, b) => b.bytes - a.bytes);
    for (const { leases } of accounts) {
      let largest: Lease | undefined;
      for (const lease of leases)
        if (lease.canBeTaken && (!largest || lease.bytes > largest.bytes)) largest = lease;
      if (largest) return largest;
    }
    return undefined;
  }
}
