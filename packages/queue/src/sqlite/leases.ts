import { type StoredConsumer } from "./consumers.ts";
import { rowBytes } from "./messages.ts";
import { Shares } from "../shares.ts";

/** What is handed out takes memory until it comes back: how much, and how much more an owner may have. */
export class Leases {
  readonly #shares: Shares;

  constructor(maxBytes: number) {
    this.#shares = new Shares(maxBytes);
  }

  clear(): void {
    this.#shares.clear();
  }

  /** In bytes; 0 or less: nothing at present. */
  room({ owner }: StoredConsumer): number {
    return this.#shares.room(owner);
  }

  handedOut(consumer: StoredConsumer, position: number, bodyBytes: number): void {
    const bytes = bodyBytes + rowBytes;
    consumer.leased.set(position, bytes);
    this.#shares.add(consumer.owner, bytes);
  }

  /** A position that is not handed out changes nothing. */
  cameBack(consumer: StoredConsumer, position: number): void {
    const bytes = consumer.leased.get(position);
    if (bytes === undefined) return;
    consumer.leased.delete(position);
    this.#shares.add(consumer.owner, -bytes);
  }
}
