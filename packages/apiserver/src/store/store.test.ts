import fs, { mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type StoreEvent } from "./event-log.ts";
import { StaleWriteError, Store } from "./store.ts";
import { type StoredObject } from "./stored-object.ts";

let dataDir: string;
let store: Store;

beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "store-"));
  store = new Store(dataDir);
});
const { fdatasync, fdatasyncSync } = fs;
afterEach(async () => {
  Object.assign(fs, { fdatasync, fdatasyncSync });
  syncBuiltinESMExports();
  await store.close();
  rmSync(dataDir, { recursive: true });
});

const place = (name: string) => ({ collection: "/things", namespace: "ns", name });
const object = (name: string, value: number | string = 0) => ({
  metadata: { name, namespace: "ns" },
  value,
});

test("what is acknowledged is there after a start", async () => {
  const first = await store.put(place("a"), undefined, object("a"));
  await store.put(place("a"), first, object("a", 1));
  const b = await store.put(place("b"), undefined, object("b"));
  await store.remove(b);
  const { revision } = store;
  await store.close();
  store = new Store(dataDir);
  expect(store.list("/things").map((stored) => stored.object.value)).toEqual([1]);
  expect(store.revision).toBe(revision);
});

test.each([
  ["one by one", false],
  ["together", true],
])("room that objects took which were removed %s goes back to the system", async (_, together) => {
  const size = () => fs.statSync(path.join(dataDir, "state.db")).size;
  const pad = "x".repeat(20_000);
  const all: StoredObject[] = [];
  // Not all in one transaction, which would be the size of the log from then on.
  for (let start = 0; start < 500; start += 50) {
    const puts = Array.from({ length: 50 }, (_, index) => {
      const name = `o${start + index}`;
      return store.put(place(name), undefined, { ...object(name), pad });
    });
    all.push(...(await Promise.all(puts)));
  }
  await store.put(place("last"), undefined, object("last"));
  const full = size();
  if (together) await Promise.all(all.map((stored) => store.remove(stored)));
  else for (const stored of all) await store.remove(stored);
  expect(full).toBeGreaterThan(8_000_000);
  // The file itself follows when the log is copied into it, every four megabytes or so.
  const written = async (index: number) => {
    const put = await store.put(place("next"), undefined, { ...object("next", index), pad });
    await store.remove(put);
    return size();
  };
  let index = 0;
  await expect.poll(() => written(index++), { interval: 20 }).toBeLessThan(1_000_000);
  expect(fs.statSync(path.join(dataDir, "state.db-wal")).size).toBeLessThan(8_000_000);
  await store.close();
  store = new Store(dataDir);
  expect(store.list("/things")).toHaveLength(1);
});

test("a second engine on the same directory is refused", () => {
  expect(() => new Store(dataDir)).toThrow("is another engine running on it?");
});

test("of writers that saw the same version, one wins", async () => {
  const seen = await store.put(place("a"), undefined, object("a"));
  const won = store.put(place("a"), seen, object("a", 1));
  expect(() => store.put(place("a"), seen, object("a", 2))).toThrow(StaleWriteError);
  expect((await won).object.value).toBe(1);
});

test("watchers hear of changes in order, once they are on disk", async () => {
  const events: StoreEvent[] = [];
  store.watch("/things", 0, (event) => events.push(event));
  const writes = [1, 2, 3].map((value) =>
    store.put(place(`o${value}`), undefined, object(`o${value}`, value)),
  );
  expect(events).toEqual([]);
  await Promise.all(writes);
  expect(events.map(({ type, revision }) => [type, revision])).toEqual([
    ["ADDED", 1],
    ["ADDED", 2],
    ["ADDED", 3],
  ]);
});

test("a watch resumes from a version, unless too much has happened since", async () => {
  let last = await store.put(place("a"), undefined, object("a"));
  for (let value = 1; value <= 10; value++)
    last = await store.put(place("a"), last, object("a", value));
  const heard: number[] = [];
  store.watch("/things", 8, ({ revision }) => heard.push(revision));
  expect(heard).toEqual([9, 10, 11]);
  for (let round = 0; round < 3; round++) {
    const writes = Array.from({ length: 1000 }, (_, i) =>
      store.put(place(`${round}-${i}`), undefined, object("x")),
    );
    await Promise.all(writes);
  }
  expect(() => store.watch("/things", 8, () => {})).toThrow("too old resource version");
});

/** So many objects of 100,000 characters. */
async function writeLarge(collection: string, count = 35): Promise<void> {
  const text = "x".repeat(100_000);
  for (let value = 0; value < count; value++) {
    const name = `${value}`;
    await store.put({ collection, namespace: "", name }, undefined, object(name, text));
  }
}

const heardSince = (collection: string, since: number): number => {
  const revisions: number[] = [];
  store.watch(collection, since, ({ revision }) => revisions.push(revision))();
  return revisions.length;
};

test("of many busy collections, the changes of longest ago are forgotten first", async () => {
  for (const collection of ["/a", "/b", "/c"]) await writeLarge(collection);
  expect(heardSince("/a", 0)).toBe(35);
  for (const collection of ["/d", "/e", "/f"]) await writeLarge(collection);
  expect(() => heardSince("/a", 0)).toThrow("too old resource version");
  expect(heardSince("/a", 35)).toBe(0);
  expect(heardSince("/f", 5 * 35)).toBe(35);
});

test("large objects of some collections do not push out what others have changed", async () => {
  for (const name of ["a", "b", "c"]) await store.put(place(name), undefined, object(name));
  for (const collection of ["/d", "/e", "/f", "/g", "/h", "/i"]) await writeLarge(collection);
  expect(() => heardSince("/d", 3)).toThrow("too old resource version");
  expect(heardSince("/things", 0)).toBe(3);
});

type Callback = (error: Error | null) => void;

/** A disk that takes its time: each sync is under way until it is let go, or fails. */
function slowDisk(): { syncs: Callback[]; blocking: number } {
  const disk = { syncs: [] as Callback[], blocking: 0 };
  Object.assign(fs, {
    fdatasync: (file: number, done: Callback) =>
      disk.syncs.push((error) => (error ? done(error) : fdatasync(file, done))),
    fdatasyncSync(file: number) {
      disk.blocking++;
      fdatasyncSync(file);
    },
  });
  syncBuiltinESMExports();
  return disk;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const turns = async (fits: () => boolean) => {
  while (!fits()) await turn();
};

test("a write is acknowledged, told and shown when the disk has it, and not before", async () => {
  const disk = slowDisk();
  const told: string[] = [];
  store.watch("/things", 0, ({ current }) => told.push(`watcher: ${current.name}`));
  const write = (name: string) =>
    store.put(place(name), undefined, object(name)).then(() => told.push(`writer: ${name}`));
  const writes = [write("a"), write("b")];
  await turns(() => disk.syncs.length === 1);
  const reader = store.read(() => {
    told.push(
      `reader: ${store
        .list("/things")
        .map(({ name }) => name)
        .join()}`,
    );
  });
  await turn();
  expect(told).toEqual([]);
  disk.syncs.shift()!(null);
  await Promise.all([...writes, reader]);
  expect(told).toEqual(["watcher: a", "watcher: b", "reader: a,b", "writer: a", "writer: b"]);
});

test("writes that come during a sync share the next one", async () => {
  const disk = slowDisk();
  const first = store.put(place("a"), undefined, object("a"));
  await turns(() => disk.syncs.length === 1);
  const rest = ["b", "c", "d"].map((name) => store.put(place(name), undefined, object(name)));
  await turn();
  expect(disk.syncs.length).toBe(1);
  disk.syncs.shift()!(null);
  await first;
  await turns(() => disk.syncs.length === 1);
  disk.syncs.shift()!(null);
  await Promise.all(rest);
  expect([disk.syncs.length, disk.blocking]).toEqual([0, 0]);
});

test("writers without pause do not keep readers waiting", async () => {
  const enough = new AbortController();
  const writer = async (name: string) => {
    let last = await store.put(place(name), undefined, object(name));
    for (let value = 1; !enough.signal.aborted; value++)
      last = await store.put(place(name), last, object(name, value));
  };
  const writers = ["a", "b", "c", "d"].map(writer);
  for (let round = 0; round < 50; round++) {
    const [revision, committed] = await store.read(() => [store.revision, store.committed]);
    expect(revision).toBe(committed);
    await turn();
  }
  enough.abort();
  await Promise.all(writers);
});

test("a disk that fails takes back what it did not get, and gets nothing more", async () => {
  const disk = slowDisk();
  const kept = store.put(place("kept"), undefined, object("kept"));
  await turns(() => disk.syncs.length === 1);
  disk.syncs.shift()!(null);
  const before = await kept;
  const lost = [store.put(place("kept"), before, object("kept", 1))];
  await turns(() => disk.syncs.length === 1);
  lost.push(store.put(place("new"), undefined, object("new")));
  disk.syncs.shift()!(new Error("EIO"));
  for (const write of lost) await expect(write).rejects.toThrow("the disk failed under the store");
  expect(store.list("/things").map((stored) => stored.object)).toEqual([before.object]);
  const next = store.put(place("next"), undefined, object("next"));
  await expect(next).rejects.toThrow("it accepts no more writes until it is restarted");
  expect(store.get(place("next"))).toBeUndefined();
});
