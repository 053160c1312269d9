import { type StoredObject } from "./stored-object.ts";

/** What all objects may take in memory, in bytes of their text. */
export interface StoreQuota {
  /** Of all objects together. */
  total: number;
  /** Of the objects of one namespace, and of those without a namespace. */
  perNamespace: number;
}

/** How much a write may add. */
export interface Growth {
  /** A part of the platform writes: it may use what is kept in reserve, so that tenants see the status of what they have. */
  own?: boolean;
  /** So many bytes are always granted: a finalizer that is removed adds the name of who has removed it. */
  slack?: number;
}

/** A write would take more room than there is. The message is for the user. */
export class StoreQuotaError extends Error {
  override readonly name = "StoreQuotaError";
}

/** A write would make an object larger than one may be. The message is for the user. */
export class ObjectTooLargeError extends Error {
  override readonly name = "ObjectTooLargeError";
}

/** Of an object, in characters: a body of 3 MiB, and what its fields' managers add. Patches could make it larger without end. */
const maxObjectLength = 6 * 1024 * 1024;

/** Throws an `ObjectTooLargeError`. */
export function checkLength(length: number, before: number): void {
  if (length <= maxObjectLength || length <= before) return;
  throw new ObjectTooLargeError(
    `Request entity too large: the object would have ${length} characters as it is stored, limited to ${maxObjectLength}`,
  );
}

/** Of the quota, for the platform's own parts only. */
const reserve = 1 / 8;
/** Of the total: what others have stored does not keep a namespace with so little from growing, until half of the reserve is used. */
const smallShare = 1 / 64;

/**
 * How much the objects take, by namespace ("" has those without one), kept up to date with each write. Removals and writes that
 * make an object smaller are never refused.
 */
export class StoredBytes {
  readonly #quota: StoreQuota;
  readonly #byNamespace = new Map<string, number>();
  #total = 0;

  constructor(quota: StoreQuota) {
    this.#quota = quota;
  }

  get total(): number {
    return this.#total;
  }

  /** Of one namespace. */
  of(namespace: string): number {
    return this.#byNamespace.get(namespace) ?? 0;
  }

  /** One version goes, another one comes. */
  replace(previous: StoredObject | undefined, current: StoredObject | undefined): void {
    const growth = (current?.bytes ?? 0) - (previous?.bytes ?? 0);
    const namespace = (current ?? previous)?.namespace ?? "";
    const left = this.of(namespace) + growth;
    if (left > 0) this.#byNamespace.set(namespace, left);
    else this.#byNamespace.delete(namespace);
    this.#total += growth;
  }

  /** Throws a `StoreQuotaError` if growth by this many bytes would exceed the quota of the namespace or of the whole store. */
  check(namespace: string, growth: number, { own = false, slack = 0 }: Growth): void {
    if (growth <= slack) return;
    const { total, perNamespace } = this.#quota;
    const used = this.of(namespace);
    const more = own ? 1 + reserve : 1;
    if (used + growth > perNamespace * more) {
      const whose = namespace ? `namespace ${namespace}` : "objects without a namespace";
      throw tooMuch(whose, used, growth, perNamespace);
    }
    const isSmall = used + growth <= total * smallShare;
    const moreInAll = own ? 1 + reserve : isSmall ? 1 + reserve / 2 : 1;
    if (this.#total + growth > total * moreInAll)
      throw tooMuch("all namespaces together", this.#total, growth, total);
  }

  /** A sentence about what is over its limit; undefined when nothing is. */
  problem(): string | undefined {
    const { total, perNamespace } = this.#quota;
    if (this.#total > total)
      return `objects take ${shown(this.#total)}, more than the limit of ${shown(total)}`;
    const over = [...this.#byNamespace].filter(([, bytes]) => bytes > perNamespace);
    const [largest] = over.sort(([, a], [, b]) => b - a);
    if (!largest) return undefined;
    const [namespace, bytes] = largest;
    const whose = namespace ? `objects of namespace ${namespace}` : "objects without a namespace";
    return `${whose} take ${shown(bytes)}, more than the limit of ${shown(perNamespace)}`;
  }
}

function tooMuch(whose: string, used: number, growth: number, limit: number): StoreQuotaError {
  return new StoreQuotaError(
    `exceeded the limit of stored bytes of ${whose}: used ${used}, requested ${growth} more, limited to ${limit}: delete objects, or start the platform with a larger --store-quota`,
  );
}

export function shown(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
