import { randomBytes } from "node:crypto";

const generations = 4;
const slotsAtFirst = 1_024;
const maxLoad = 0.75;

/**
 * Where messages were accepted whose keys are still known, in memory: an index on disk of values without an order has each
 * message change another page of it, and becomes slow once it is larger than the cache. A key takes 16 bytes, about.
 */
export class KnownKeys {
  readonly #spanMs: number;
  /** The latest last; each is forgotten as a whole. */
  readonly #generations: Generation[] = [];
  /** Publishers choose keys: without it, they could choose those that all fall into one place. */
  readonly #seed = randomBytes(8);

  /** Keys are known for this time, or somewhat longer. */
  constructor(windowMs: number) {
    this.#spanMs = Math.max(1, Math.ceil(windowMs / generations));
  }

  /** `hash` has 48 bits. */
  add(hash: number, position: number, at: number): void {
    let last = this.#generations.at(-1);
    // After a transaction that was undone, positions are used again.
    if (!last || at >= last.begin + this.#spanMs || at < last.begin || position < last.base) {
      last = new Generation(at, position);
      this.#generations.push(last);
      while ((this.#generations[0]?.begin ?? at) < at - (generations + 1) * this.#spanMs)
        this.#generations.shift();
    }
    last.add(this.#printOf(hash), position);
  }

  /** Positions of messages that may have this hash, the latest first; some of them may have been removed, or undone. */
  find(hash: number): number[] {
    const print = this.#printOf(hash);
    const positions: number[] = [];
    for (let at = this.#generations.length - 1; at >= 0; at--)
      this.#generations[at]?.find(print, positions);
    return positions;
  }

  #printOf(hash: number): number {
    const high = Math.floor(hash / 2 ** 32);
    let print = Math.imul((hash >>> 0) ^ this.#seed.readUInt32LE(0), 0x85ebca6b);
    print = Math.imul(print ^ (print >>> 15) ^ high ^ this.#seed.readUInt32LE(4), 0xc2b2ae35);
    return (print ^ (print >>> 16)) >>> 0;
  }
}

/** What was accepted within one span of time: a hash table with open addresses. */
class Generation {
  readonly begin: number;
  /** The first position. */
  readonly base: number;
  /** Pairs: the print, and how far the position is from the first one, plus one; 0: free. */
  #slots = new Uint32Array(2 * slotsAtFirst);
  #count = 0;

  constructor(begin: number, base: number) {
    this.begin = begin;
    this.base = base;
  }

  add(print: number, position: number): void {
    if (this.#count >= (this.#slots.length / 2) * maxLoad) this.#grow();
    this.#count++;
    insert(this.#slots, print, position - this.base + 1);
  }

  find(print: number, positions: number[]): void {
    const slots = this.#slots;
    const mask = slots.length / 2 - 1;
    for (let at = print & mask; ; at = (at + 1) & mask) {
      const distance = slots[2 * at + 1] ?? 0;
      if (distance === 0) return;
      if (slots[2 * at] === print) positions.push(this.base + distance - 1);
    }
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(2 * before.length);
    for (let at = 0; at < before.length; at += 2) {
      const distance = before[at + 1] ?? 0;
      if (distance !== 0) insert(this.#slots, before[at] ?? 0, distance);
    }
  }
}

function insert(slots: Uint32Array, print: number, distance: number): void {
  const mask = slots.length / 2 - 1;
  let at = print & mask;
  while (slots[2 * at + 1] !== 0) at = (at + 1) & mask;
  slots[2 * at] = print;
  slots[2 * at + 1] = distance;
}
