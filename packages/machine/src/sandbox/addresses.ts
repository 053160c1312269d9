import { createHash } from "node:crypto";

/** Loopback addresses for Pods: Linux owns all of 127.0.0.0/8, so every Pod may listen on 8080. */
export class AddressPool {
  readonly #used = new Set<string>();
  /** Two platforms on one machine, with different data directories, keep out of each other's way. */
  readonly #network: number;
  readonly #distinct: boolean;
  #next: number;

  constructor(dataDir: string, platform: NodeJS.Platform = process.platform) {
    const hash = createHash("sha256").update(dataDir).digest();
    const network = 16 + ((hash[0] ?? 0) % 200);
    // 127.96.0.0/12 is where Services have their places at the gateway (docs/adr/0018-serving-from-zero.md).
    this.#network = network >= 96 && network < 112 ? network + 120 : network;
    this.#next = hash.readUInt16BE(1);
    this.#distinct = platform === "linux";
  }

  /** Whether Pods have addresses of their own; elsewhere they share 127.0.0.1 and its ports. */
  get distinct(): boolean {
    return this.#distinct;
  }

  /** The next free address. Not the one just given back: its connections may still be known. */
  take(): string {
    if (!this.#distinct) return "127.0.0.1";
    for (let attempts = 0; attempts < 65_536; attempts++) {
      this.#next = (this.#next + 1) % 65_536;
      const [high, low] = [this.#next >> 8, this.#next & 255];
      if (low === 0 || low === 255) continue;
      const address = `127.${this.#network}.${high}.${low}`;
      if (this.#used.has(address)) continue;
      this.#used.add(address);
      return address;
    }
    throw new Error("no loopback address is free: too many Pods");
  }

  /** Marks an address that a Pod of an earlier agent still has. */
  reserve(address: string): void {
    this.#used.add(address);
  }

  release(address: string): void {
    this.#used.delete(address);
  }
}
