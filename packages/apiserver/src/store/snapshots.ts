/** What slow readers of one namespace may keep from going, in bytes. */
const maxBytes = 64 * 1024 * 1024;

interface Snapshot {
  /** What had been replaced when it began. */
  since: number;
  giveUp: () => void;
}

/**
 * Readers that refer to objects as they were: versions that are replaced meanwhile stay in memory for them. Of each namespace, and of
 * all together (""), the oldest readers are given up when that becomes too much.
 */
export class Snapshots {
  readonly #replaced = new Map<string, number>();
  readonly #open = new Map<string, Set<Snapshot>>();

  /** Returns what is to be called when the reader has finished. */
  open(namespace: string, giveUp: () => void): () => void {
    let readers = this.#open.get(namespace);
    if (!readers) this.#open.set(namespace, (readers = new Set()));
    const snapshot = { since: this.#replaced.get(namespace) ?? 0, giveUp };
    readers.add(snapshot);
    return () => this.#close(namespace, readers, snapshot);
  }

  /** A version of so many bytes has been replaced or removed. */
  note(namespace: string, bytes: number): void {
    if (this.#open.size === 0) return;
    this.#add(namespace, bytes);
    if (namespace !== "") this.#add("", bytes);
  }

  #close(scope: string, readers: Set<Snapshot>, snapshot: Snapshot): void {
    if (!readers.delete(snapshot) || readers.size > 0) return;
    this.#open.delete(scope);
    this.#replaced.delete(scope);
  }

  #add(scope: string, bytes: number): void {
    const readers = this.#open.get(scope);
    if (!readers) return;
    const replaced = (this.#replaced.get(scope) ?? 0) + bytes;
    this.#replaced.set(scope, replaced);
    for (const snapshot of readers) {
      if (replaced - snapshot.since <= maxBytes) return;
      this.#close(scope, readers, snapshot);
      snapshot.giveUp();
    }
  }
}
