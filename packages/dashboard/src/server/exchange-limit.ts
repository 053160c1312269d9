import { RequestError } from "./http.ts";

/** What one address may do at once, and then in each second: behind an Ingress all browsers have one. */
const burst = 50;
const perSecond = 10;
const maxAtOnce = 32;
const maxAddresses = 10_000;

interface Allowance {
  left: number;
  at: number;
}

/**
 * Bounds what callers who have not logged in can make this server ask of the identity provider: each exchange is a request to it
 * that carries the client's secret.
 */
export class ExchangeLimit {
  readonly #now: () => number;
  /** The address that was seen last comes last. */
  readonly #allowances = new Map<string, Allowance>();
  #underWay = 0;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** @throws RequestError 429, without having begun */
  async run<T>(address: string, exchange: () => Promise<T>): Promise<T> {
    if (this.#underWay >= maxAtOnce || !this.#take(address))
      throw new RequestError(429, "too many logins at once: try again in a moment");
    this.#underWay++;
    try {
      return await exchange();
    } finally {
      this.#underWay--;
    }
  }

  #take(address: string): boolean {
    const now = this.#now();
    const before = this.#allowances.get(address) ?? { left: burst, at: now };
    const gained = ((now - before.at) / 1_000) * perSecond;
    const left = Math.min(burst, before.left + Math.max(0, gained));
    this.#allowances.delete(address);
    this.#allowances.set(address, { left: left >= 1 ? left - 1 : left, at: now });
    for (const oldest of this.#allowances.keys()) {
      if (this.#allowances.size <= maxAddresses) break;
      this.#allowances.delete(oldest);
    }
    return left >= 1;
  }
}
