/**
 * The memory for bodies of requests, of all users together. A user may take no more than is left for others (dynamic
 * thresholds, Choudhury and Hahne 1998): one alone gets half of it.
 */
export class BodyBudget {
  readonly #taken = new Map<string, number>();
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** What one request of a user takes. */
  share(user: string): BodyShare {
    let own = 0;
    let isOver = false;
    return {
      take: (bytes) => {
        const taken = (this.#taken.get(user) ?? 0) + bytes;
        if (isOver || taken > this.#free - bytes) return false;
        this.#taken.set(user, taken);
        this.#free -= bytes;
        own += bytes;
        return true;
      },
      giveBack: () => {
        isOver = true;
        this.#free += own;
        const left = (this.#taken.get(user) ?? 0) - own;
        own = 0;
        if (left > 0) this.#taken.set(user, left);
        else this.#taken.delete(user);
      },
    };
  }
}

export interface BodyShare {
  /** False when it is too much, and nothing is taken. */
  take: (bytes: number) => boolean;
  /** All of it, when the request has been answered, or its client has left; no more is given then. */
  giveBack: () => void;
}
