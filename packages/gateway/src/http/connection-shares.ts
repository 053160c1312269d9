/** A connection, or what counts like one. */
export interface Shared {
  remoteAddress?: string | undefined;
  once(event: "close", listener: () => void): unknown;
}

/** How many connections there are from each address, so that none takes them all. */
export class ConnectionShares {
  readonly #max: number;
  readonly #open = new Map<string, number>();

  /** `max` for each address. */
  constructor(max: number) {
    this.#max = max;
  }

  /** False when its address has its share already; otherwise counts it until it is closed. */
  admit(socket: Shared): boolean {
    const address = socket.remoteAddress ?? "";
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#max) return false;
    this.#open.set(address, open + 1);
    socket.once("close", () => {
      const left = (this.#open.get(address) ?? 1) - 1;
      if (left > 0) this.#open.set(address, left);
      else this.#open.delete(address);
    });
    return true;
  }
}
