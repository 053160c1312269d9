import { createHash } from "node:crypto";
import { type ObjectKey, splitKey } from "@spry/kube";

/** 127.96.0.0/12 without its first and last addresses; ports below those that systems hand out themselves. */
const addressBase = (127 << 24) | (96 << 16);
const addressCount = 2 ** 20;
const portCount = 12_000;
const firstPort = 20_000;

/** Where gateways listen for callers inside a cluster: a port for each Service of a Route. */
export const gatewayPorts = { first: firstPort, last: firstPort + portCount - 1 } as const;

export type PlaceKind = "address" | "port";

/**
 * Where each Service has its place at the gateway: by a hash of its name, and the next free one if that is taken. What is in
 * use is read from the slices, so that places outlive a leader. A namespace may take no more than it leaves to others: one
 * alone gets half of them, two a third each, and there is always one for the next.
 */
export class Places {
  readonly #kind: PlaceKind;
  readonly #byPlace = new Map<string, ObjectKey>();
  readonly #byService = new Map<ObjectKey, string>();
  readonly #perNamespace = new Map<string, number>();
  /** Services that requested a place and did not get one. */
  readonly #refused = new Set<ObjectKey>();
  readonly #count: number;

  /** `count` is how many there are. */
  constructor(kind: PlaceKind, count = kind === "port" ? portCount : addressCount) {
    this.#kind = kind;
    this.#count = count;
  }

  /** The Service's place, `127.96.3.7` or `20017`; undefined when its namespace may take no more. */
  take(service: ObjectKey): string | undefined {
    const present = this.#byService.get(service);
    if (present !== undefined) return present;
    const place = this.#mayTake(service) ? this.#nextFree(service) : undefined;
    if (place === undefined) this.#refused.add(service);
    else this.#set(service, place);
    return place;
  }

  /** Whether the Service requested a place, did not get one, and still needs it. */
  hasRefused(service: ObjectKey): boolean {
    return this.#refused.has(service);
  }

  /** Those that may ask again, now that a place has become free. */
  get refused(): readonly ObjectKey[] {
    return [...this.#refused];
  }

  #nextFree(service: ObjectKey): string | undefined {
    const start = createHash("sha256").update(service).digest().readUInt32BE(0);
    const count = this.#count;
    for (let step = 0; step < count; step++) {
      const place = this.#placeAt((start + step) % count);
      if (place !== undefined && !this.#byPlace.has(place)) return place;
    }
    return undefined;
  }

  /** Notes what a slice says; false if the place belongs to another Service or is none of ours. */
  restore(service: ObjectKey, place: string): boolean {
    const owner = this.#byPlace.get(place);
    if (owner !== undefined) return owner === service;
    if (!this.#isOurs(place) || this.#byService.has(service)) return false;
    this.#set(service, place);
    return true;
  }

  /** Returns whether there was something to give back. */
  release(service: ObjectKey): boolean {
    this.#refused.delete(service);
    const place = this.#byService.get(service);
    if (place === undefined) return false;
    this.#byService.delete(service);
    this.#byPlace.delete(place);
    this.#countIn(service, -1);
    return true;
  }

  #mayTake(service: ObjectKey): boolean {
    const { namespace = "" } = splitKey(service);
    const taken = this.#perNamespace.get(namespace) ?? 0;
    return taken < this.#count - this.#byPlace.size;
  }

  #set(service: ObjectKey, place: string): void {
    this.#refused.delete(service);
    this.#byService.set(service, place);
    this.#byPlace.set(place, service);
    this.#countIn(service, 1);
  }

  #countIn(service: ObjectKey, change: 1 | -1): void {
    const { namespace = "" } = splitKey(service);
    const taken = (this.#perNamespace.get(namespace) ?? 0) + change;
    if (taken > 0) this.#perNamespace.set(namespace, taken);
    else this.#perNamespace.delete(namespace);
  }

  #placeAt(index: number): string | undefined {
    if (this.#kind === "port") return String(firstPort + index);
    const [last, third] = [index & 255, (index >> 8) & 255];
    if (last === 0 || last === 255) return undefined;
    const address = (addressBase + index) >>> 0;
    return `${address >>> 24}.${(address >>> 16) & 255}.${third}.${last}`;
  }

  #isOurs(place: string): boolean {
    if (this.#kind === "address") return /^127\.(?:9[6-9]|10\d|11[01])\.\d+\.\d+$/.test(place);
    const port = Number(place);
    return Number.isInteger(port) && port >= firstPort && port < firstPort + portCount;
  }
}
