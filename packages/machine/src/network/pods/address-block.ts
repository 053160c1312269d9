const first = (10 << 24) + (244 << 16);
/** Of 1024 addresses: more than a node runs Pods. */
const size = 1024;
const count = 65_536 / size;
/** Below are the machine's, the router's, and spare ones. */
const firstPod = 16;

/** Addresses for the Pods of one platform: a part of 10.244.0.0/16, as network plugins use it. */
export class AddressBlock {
  readonly number: number;
  readonly #base: number;

  /** `number` is taken modulo the number of blocks. */
  constructor(number: number) {
    this.number = number % count;
    this.#base = first + this.number * size;
  }

  static get count(): number {
    return count;
  }

  get cidr(): string {
    return `${text(this.#base)}/22`;
  }
  /** The machine, as Pods see it. */
  get host(): string {
    return text(this.#base + 1);
  }
  get router(): string {
    return text(this.#base + 2);
  }
  get podCount(): number {
    return size - firstPod - 1;
  }

  /** `index` counts from 0. */
  pod(index: number): string {
    return text(this.#base + firstPod + index);
  }

  /** The opposite of `pod`; undefined for addresses of others. */
  indexOf(address: string): number | undefined {
    const parts = address.split(".").map(Number);
    if (parts.length !== 4) return undefined;
    const index = parts.reduce((sum, part) => sum * 256 + part, 0) - this.#base - firstPod;
    return index >= 0 && index < this.podCount ? index : undefined;
  }
}

function text(address: number): string {
  return [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join(".");
}
