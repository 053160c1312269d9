/**
 * What a user has typed, in the browser's database, encrypted: it is there after the tab has been closed, and readable only after
 * a login of the same user at the same platform.
 */

/** As the dashboard's server gives it to a user (server/draft-keys.ts). */
export interface StoreKey {
  platform: string;
  user: string;
  /** In base64. */
  key: string;
}

/** What a tab has stored under a name. */
export interface StoredValue {
  tab: string;
  name: string;
  /** Milliseconds since 1970. */
  saved: number;
  value: unknown;
}

interface Sealed {
  saved: number;
  iv: Uint8Array<ArrayBuffer>;
  data: ArrayBuffer;
}

const database = "spry";
const table = "typed";
const maxAgeMs = 7 * 86_400_000;

export class EncryptedStore {
  readonly #owner: readonly [string, string];
  readonly #key: CryptoKey;
  readonly #db: IDBDatabase;

  private constructor(owner: readonly [string, string], key: CryptoKey, db: IDBDatabase) {
    this.#owner = owner;
    this.#key = key;
    this.#db = db;
  }

  /** Removes what is too old, of every user. Rejects where the browser stores or encrypts nothing for this page. */
  static async open({ platform, user, key }: StoreKey): Promise<EncryptedStore> {
    const bytes = Uint8Array.from(atob(key), (each) => each.charCodeAt(0));
    const imported = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, [
      "encrypt",
      "decrypt",
    ]);
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(table);
    const db = await resultOf(opening);
    const store = new EncryptedStore([platform, user], imported, db);
    await store.#removeOld();
    return store;
  }

  async put(tab: string, name: string, value: unknown, isWanted: () => boolean): Promise<void> {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const text = new TextEncoder().encode(JSON.stringify(value));
    const data = await crypto.subtle.encrypt(this.#sealOf(tab, name, iv), this.#key, text);
    if (!isWanted()) return;
    const sealed: Sealed = { saved: Date.now(), iv, data };
    await this.#write((all) => all.put(sealed, this.#idOf(tab, name)));
  }

  remove(tab: string, name: string): Promise<void> {
    return this.#write((all) => all.delete(this.#idOf(tab, name)));
  }

  /** Everything that this user has typed here. */
  clear(): Promise<void> {
    return this.#write((all) => all.delete(this.#range));
  }

  async get(tab: string, name: string): Promise<StoredValue | undefined> {
    const all = this.#db.transaction(table).objectStore(table);
    const sealed = await resultOf(all.get(this.#idOf(tab, name)));
    return sealed === undefined ? undefined : this.#opened(tab, name, sealed as Sealed);
  }

  async all(): Promise<StoredValue[]> {
    const all = this.#db.transaction(table).objectStore(table);
    const [ids, sealed] = await Promise.all([
      resultOf(all.getAllKeys(this.#range)),
      resultOf(all.getAll(this.#range)),
    ]);
    const opened = await Promise.all(
      ids.map((id, at) => {
        const [, , tab = "", name = ""] = id as string[];
        return this.#opened(tab, name, sealed[at] as Sealed);
      }),
    );
    return opened.filter((each) => each !== undefined);
  }

  /** Undefined for what cannot be read: of another key, or changed by someone. */
  async #opened(tab: string, name: string, sealed: Sealed): Promise<StoredValue | undefined> {
    try {
      const { saved, iv, data } = sealed;
      const bytes = await crypto.subtle.decrypt(this.#sealOf(tab, name, iv), this.#key, data);
      return { tab, name, saved, value: JSON.parse(new TextDecoder().decode(bytes)) as unknown };
    } catch {
      return undefined;
    }
  }

  async #removeOld(): Promise<void> {
    await this.#write((all) => {
      const each = all.openCursor();
      each.onsuccess = () => {
        const { result } = each;
        if (!result) return;
        const { saved } = result.value as Partial<Sealed>;
        if (!(Date.now() - Number(saved) < maxAgeMs)) result.delete();
        result.continue();
      };
    });
  }

  async #write(change: (all: IDBObjectStore) => unknown): Promise<void> {
    const transaction = this.#db.transaction(table, "readwrite");
    const written = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("nothing was stored"));
    });
    change(transaction.objectStore(table));
    await written;
  }

  /** A value is read under its own name only. */
  #sealOf(tab: string, name: string, iv: Uint8Array<ArrayBuffer>): AesGcmParams {
    return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(`${tab}\n${name}`) };
  }

  #idOf(tab: string, name: string): string[] {
    return [...this.#owner, tab, name];
  }

  get #range(): IDBKeyRange {
    // A list comes after all texts.
    return IDBKeyRange.bound([...this.#owner], [...this.#owner, []]);
  }
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser's database failed"));
  });
}
