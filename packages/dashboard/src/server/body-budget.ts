/**
 * The memory for request bodies of all users together. A user may take no more than remains for the others (dynamic
 * thresholds, Choudhury and Hahne 1998): a single user gets half of it.
 */
export class BodyBudget {
  readonly #taken = new Map<string, number>();
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** The memory that one request of a user takes. */
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
  /** Returns false, and takes nothing, when it is too much. */
  take: (bytes: number) => boolean;
  /** Gives everything back, once the request has been answered or its client has left; nothing can be taken afterwards. */
  giveBack: () => void;
}
