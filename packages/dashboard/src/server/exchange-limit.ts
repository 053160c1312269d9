import { RequestError } from "./http.ts";

/** What one key may do at once, and then in each second: behind an Ingress all browsers have one address. */
const burst = 50;
const perSecond = 10;
const maxAtOnce = 32;
const maxKeys = 10_000;

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
  /** The key that was seen last comes last. */
  readonly #allowances = new Map<string, Allowance>();
  #underWay = 0;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * `key`: who is asking, for example an address.
   * @throws RequestError 429, without having begun
   */
  async run<T>(key: string, exchange: () => Promise<T>): Promise<T> {
    if (this.#underWay >= maxAtOnce || !this.#take(key))
      throw new RequestError(429, "too many logins at once: try again in a moment");
    this.#underWay++;
    try {
      return await exchange();
    } finally {
      this.#underWay--;
    }
  }

  #take(key: string): boolean {
    const now = this.#now();
    const before = this.#allowances.get(key) ?? { left: burst, at: now };
    const gained = ((now - before.at) / 1_000) * perSecond;
    const left = Math.min(burst, before.left + Math.max(0, gained));
    this.#allowances.delete(key);
    this.#allowances.set(key, { left: left >= 1 ? left - 1 : left, at: now });
    for (const oldest of this.#allowances.keys()) {
      if (this.#allowances.size <= maxKeys) break;
      this.#allowances.delete(oldest);
    }
    return left >= 1;
  }
}
