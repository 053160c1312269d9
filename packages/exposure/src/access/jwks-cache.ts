import { type JsonWebKey } from "node:crypto";
import { type Clock, messageOf, systemClock } from "@spry/kube";
import { type PublicKey, publicKeyOf } from "./signature.ts";

/** Of a set of keys, those that can verify tokens. */
export interface VerificationKey {
  id: string | undefined;
  /** The algorithm that the set names for it, if it does. */
  algorithm: string | undefined;
  type: string;
  curve: string | undefined;
  /** Undefined if it is not a key that can be used. */
  readonly key: PublicKey | undefined;
}

/** A sentence for the status and the log; never part of an answer to a caller. */
export class KeysUnavailableError extends Error {
  override name = "KeysUnavailableError";
}

/** A set of keys for one tenant, which cannot find out what another one has fetched, or what has failed for it. */
export interface KeySource {
  uri: string;
  /** The namespace of the APIRule. */
  tenant: string;
}

export interface JwksCacheOptions {
  /** Resolves with the text of a set, limited in size and time (`fetchKeys`). */
  fetch: (source: KeySource) => Promise<string>;
  clock?: Clock;
}

/** Sets that are kept, of all tenants and of one; the tenant's least recently used one makes room. */
const maxSets = 2_000;
const maxSetsOfTenant = 50;
const maxKeys = 100;
/** A set is fetched again after this time, in the background. */
const freshMs = 300_000;
/** While an issuer is unreachable, its last keys are good for this long. */
const staleMs = 3_600_000;
/** A failure is remembered: no client can make us fetch more often. */
const retryMs = 10_000;
/**
 * An unknown key causes the set to be fetched again: so many times at once, and one more time in each interval. Strangers who invent
 * keys can therefore delay a new one by the interval, and no longer.
 */
const maxRotations = 3;
const rotationMs = 5_000;
/** A signature that is not good causes it, too, because a key may have been replaced under its id: at most so often. */
const renewalMs = 10_000;

interface Entry {
  source: KeySource;
  keys: VerificationKey[] | undefined;
  /** As it was fetched. */
  text: string;
  /** The number of the set, of all different ones that were ever fetched. */
  version: number;
  fetchedAt: number;
  /** When a fetch was last begun. */
  triedAt: number;
  /** How many more times it may be fetched for unknown keys, and since when. */
  rotations: number;
  rotationsAt: number;
  /** When it was last fetched for a signature. */
  renewedAt: number;
  problem: string | undefined;
  fetching: Promise<void> | undefined;
}

/**
 * The keys of issuers by tenant and URL of their set (RFC 7517). A set is fetched once, however many requests wait for it; a
 * token with an unknown `kid` causes it to be fetched again, three times at once and then at most every 5 s; one whose signature is not
 * good, at most every 10 s.
 */
export class JwksCache {
  readonly #entries = new Map<string, Entry>();
  readonly #fetch: (source: KeySource) => Promise<string>;
  readonly #clock: Clock;
  #sets = 0;

  constructor({ fetch, clock = systemClock }: JwksCacheOptions) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /**
   * The keys that may have signed a token with this header.
   * @throws KeysUnavailableError if there are none to decide with
   */
  async keysFor(
    source: KeySource,
    header: { kid?: string; alg: string },
  ): Promise<VerificationKey[]> {
    const entry = this.#use(source);
    const age = () => this.#clock.elapsed() - entry.fetchedAt;
    if (!entry.keys || age() > staleMs) {
      if (this.#mayTry(entry)) await this.#refresh(entry);
      else await entry.fetching;
    } else if (age() > freshMs && this.#mayTry(entry)) void this.#refresh(entry);
    if (!entry.keys || age() > staleMs) throw new KeysUnavailableError(entry.problem);
    const found = () => matching(entry.keys ?? [], header);
    if (found().length === 0)
      await this.#renew(
        entry,
        () => found().length > 0,
        () => this.#mayRotate(entry),
      );
    return found();
  }

  /**
   * After a signature was not good with the keys of this version: whether there is another set by now, which may have replaced a key
   * under its id.
   */
  async isRenewed(source: KeySource, version: number | undefined): Promise<boolean> {
    const entry = this.#use(source);
    const isOther = () => entry.version !== version;
    if (!isOther()) await this.#renew(entry, isOther, () => this.#mayRenew(entry));
    return isOther();
  }

  /** Fetches the set, if it may. A fetch that is under way may have begun before a key was published: then once more. */
  async #renew(entry: Entry, isEnough: () => boolean, mayFetch: () => boolean): Promise<void> {
    const isUnderWay = entry.fetching !== undefined;
    if (isUnderWay || mayFetch()) await this.#refresh(entry);
    if (isUnderWay && !isEnough() && (entry.fetching || mayFetch())) await this.#refresh(entry);
  }

  /**
   * A number that changes when the set is replaced: what was verified with the one before has to be verified again.
   * Undefined without a set that is good. Begins to fetch the set in the background when it is time.
   */
  version(source: KeySource): number | undefined {
    const entry = this.#entries.get(keyOf(source));
    if (!entry?.keys) return undefined;
    const age = this.#clock.elapsed() - entry.fetchedAt;
    if (age > freshMs && this.#mayTry(entry)) void this.#refresh(entry);
    return age > staleMs ? undefined : entry.version;
  }

  /** Why the last attempt to fetch a set failed, for the tenant that requested it; undefined if it succeeded. */
  problem(source: KeySource): string | undefined {
    return this.#entries.get(keyOf(source))?.problem;
  }

  #use(source: KeySource): Entry {
    const key = keyOf(source);
    const known = this.#entries.get(key);
    const never = Number.NEGATIVE_INFINITY;
    const entry: Entry = known ?? {
      source,
      keys: undefined,
      text: "",
      version: 0,
      fetchedAt: never,
      triedAt: never,
      rotations: maxRotations,
      rotationsAt: this.#clock.elapsed(),
      renewedAt: never,
      problem: undefined,
      fetching: undefined,
    };
    // The order of a Map is that of insertion: the first was not used for longest.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (!known) this.#makeRoom(source.tenant);
    return entry;
  }

  #makeRoom(tenant: string): void {
    const own = [...this.#entries].filter(([, { source }]) => source.tenant === tenant);
    if (own.length > maxSetsOfTenant) this.#entries.delete(own[0]?.[0] ?? "");
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > maxSets && oldest !== undefined) this.#entries.delete(oldest);
  }

  #mayTry({ fetching, triedAt }: Entry): boolean {
    return fetching !== undefined || this.#clock.elapsed() - triedAt >= retryMs;
  }

  /** Takes one of the times that a set may be fetched for keys that are not in it. */
  #mayRotate(entry: Entry): boolean {
    const now = this.#clock.elapsed();
    const earned = Math.floor((now - entry.rotationsAt) / rotationMs);
    entry.rotations = Math.min(maxRotations, entry.rotations + earned);
    entry.rotationsAt =
      entry.rotations === maxRotations ? now : entry.rotationsAt + earned * rotationMs;
    if (entry.rotations === 0) return false;
    entry.rotations--;
    return true;
  }

  #mayRenew(entry: Entry): boolean {
    const now = this.#clock.elapsed();
    if (now - entry.renewedAt < renewalMs) return false;
    entry.renewedAt = now;
    return true;
  }

  #refresh(entry: Entry): Promise<void> {
    return (entry.fetching ??= this.#load(entry).finally(() => (entry.fetching = undefined)));
  }

  async #load(entry: Entry): Promise<void> {
    entry.triedAt = this.#clock.elapsed();
    const { uri } = entry.source;
    try {
      const text = await this.#fetch(entry.source);
      // What was verified with the same keys stays verified.
      if (!entry.keys || entry.text !== text) {
        entry.keys = parseKeys(text);
        entry.text = text;
        entry.version = ++this.#sets;
      }
      entry.fetchedAt = this.#clock.elapsed();
      entry.problem = undefined;
    } catch (error) {
      entry.problem = `keys at ${uri} could not be fetched: ${messageOf(error)}`;
    }
  }
}

/** Names of namespaces have no space. */
const keyOf = ({ tenant, uri }: KeySource) => `${tenant} ${uri}`;

function parseKeys(text: string): VerificationKey[] {
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw new Error("the answer is not JSON");
  }
  const keys = (set as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new Error('the answer has no list of "keys" (RFC 7517)');
  const usable = keys.slice(0, maxKeys).flatMap((key: unknown) => verificationKey(key) ?? []);
  if (usable.length === 0) throw new Error("the answer has no key that can verify a token");
  return usable;
}

/** Public keys only: a set that has a secret in it has no place for it here. */
const keyTypes = new Set(["RSA", "EC", "OKP"]);

function verificationKey(value: unknown): VerificationKey | undefined {
  const { kty, kid, alg, crv, n, e, x, y, use } = (value ?? {}) as Record<string, unknown>;
  if (typeof kty !== "string" || !keyTypes.has(kty) || (use !== undefined && use !== "sig"))
    return undefined;
  const text = (field: unknown) => (typeof field === "string" ? field : undefined);
  const parts = Object.entries({ crv, n, e, x, y }).filter(([, part]) => typeof part === "string");
  const jwk = { kty, ...Object.fromEntries(parts) } as JsonWebKey;
  let key: { of: PublicKey | undefined } | undefined;
  return {
    id: text(kid),
    algorithm: text(alg),
    type: kty,
    curve: text(crv),
    get key() {
      return (key ??= { of: imported(jwk) }).of;
    },
  };
}

function imported(jwk: JsonWebKey): PublicKey | undefined {
  try {
    return publicKeyOf(jwk);
  } catch {
    return undefined;
  }
}

/** Which algorithm is for which kind of key (RFC 7518, section 3.1; RFC 8037). */
function isFor(algorithm: string, { type, curve }: VerificationKey): boolean {
  switch (algorithm.slice(0, 2)) {
    case "RS":
    case "PS":
      return type === "RSA";
    case "ES":
      return (
        type === "EC" && curve === { ES256: "P-256", ES384: "P-384", ES512: "P-521" }[algorithm]
      );
    case "Ed":
      return type === "OKP" && curve === "Ed25519";
    default:
      return false;
  }
}

/** Those of the header's id first. */
function matching(
  keys: readonly VerificationKey[],
  { kid, alg }: { kid?: string; alg: string },
): VerificationKey[] {
  const mayBe = keys.filter(
    ({ id, algorithm }) =>
      (kid === undefined || id === undefined || id === kid) &&
      (algorithm === undefined || algorithm === alg),
  );
  const usable = mayBe.filter((key) => isFor(alg, key));
  if (kid === undefined) return usable;
  return usable.toSorted((one, other) => Number(other.id === kid) - Number(one.id === kid));
}
