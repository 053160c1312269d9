import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type StoreEvent } from "./event-log.ts";
import { StaleWriteError, Store } from "./store.ts";

let dataDir: string;
let store: Store;

beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "store-"));
  store = new Store(dataDir);
});
afterEach(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true });
});

const place = (name: string) => ({ collection: "/things", namespace: "ns", name });
const object = (name: string, value = 0) => ({ metadata: { name, namespace: "ns" }, value });

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
