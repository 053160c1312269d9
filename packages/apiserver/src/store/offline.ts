import { Store } from "./store.ts";

/** Copies the store of a data directory that no engine runs on. Throws a `DamagedStoreError`. */
export async function snapshotStore(dataDir: string, file: string): Promise<void> {
  const store = new Store(dataDir);
  try {
    await store.snapshot(file);
  } finally {
    await store.close();
  }
}

/** Reads and checks every object of a data directory that no engine runs on. Throws a `DamagedStoreError`. */
export async function checkStore(dataDir: string): Promise<{ objects: number }> {
  const store = new Store(dataDir);
  try {
    return { objects: objectsIn(store) };
  } finally {
    await store.close();
  }
}

/**
 * Gets a store that was put back ready for an engine: every object is checked (`DamagedStoreError`), and
 * the next version is far beyond all that clients of the lost store may have seen, or they
 * would take the past for the future.
 */
export async function adoptRestoredStore(dataDir: string): Promise<{ objects: number }> {
  const store = new Store(dataDir);
  try {
    await store.advance(1_000_000);
    return { objects: objectsIn(store) };
  } finally {
    await store.close();
  }
}

const objectsIn = (store: Store): number =>
  store.collections().reduce((sum, name) => sum + store.list(name).length, 0);
