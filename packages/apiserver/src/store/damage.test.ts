/** What a store says of a file that is not what it left on disk: every kind of damage, none of it silent. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DamagedStoreError } from "./damaged-store-error.ts";
import { Store } from "./store.ts";

let dataDir: string;
let file: string;

beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "damage-"));
  file = path.join(dataDir, "state.db");
});
afterEach(() => rmSync(dataDir, { recursive: true }));

async function fill(count: number): Promise<Store> {
  const store = new Store(dataDir);
  for (let i = 0; i < count; i++) await put(store, `o${i}`);
  return store;
}
const put = (store: Store, name: string) =>
  store.put({ collection: "/things", namespace: "ns", name }, undefined, {
    metadata: { name, namespace: "ns" },
    text: `the text of ${name}, long enough to be found again`,
  });

function alter(change: (bytes: Buffer) => void, target = file): void {
  const bytes = readFileSync(target);
  change(bytes);
  writeFileSync(target, bytes);
}
/** In free space of the file, too, there may be a copy. */
const flip = (needle: string) => (bytes: Buffer) => {
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1))
    bytes[at] = (bytes[at] ?? 0) ^ 1;
};
const sql = (statement: string) => () => {
  const database = new DatabaseSync(file);
  database.exec(statement);
  database.close();
};

describe("a closed store that was damaged is refused, and not touched", () => {
  const rows: [damage: string, apply: () => void, message: RegExp][] = [
    ["a bit of an object", () => alter(flip("the text of o7,")), /\/things ns\/o7 is not what was written/],
    ["emptied", () => truncateSync(file, 0), /it is empty/],
    ["cut short", () => truncateSync(file, 8192), /damaged/],
    ["overwritten", () => writeFileSync(file, "x".repeat(20_000)), /not a database/],
    ["another database", () => {
      rmSync(file);
      sql("CREATE TABLE t (a)")();
    }, /none of the tables of a store/],
    ["a page of zeros", () => alter((bytes) => bytes.fill(0, 8192, 12_288)), /damaged/],
    ["an object lost", sql("DELETE FROM objects WHERE name = 'o3'"), /49 objects instead of the 50/],
    ["an object set back", sql("UPDATE objects SET revision = 1 WHERE name = 'o3'"), /ns\/o3 is not what/],
  ]; // prettier-ignore
  test.each(rows)("%s", async (_damage, apply, message) => {
    await (await fill(50)).close();
    apply();
    const before = readFileSync(file);
    expect(() => new Store(dataDir)).toThrow(DamagedStoreError);
    expect(() => new Store(dataDir)).toThrow(message);
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe("the log of a store that was killed", () => {
  const names = ["state.db", "state.db-wal", "state.db-acknowledged"];
  /** The files as a crash would leave them, for the store itself holds its own open; `mark` as it was after so many writes. */
  async function crashed(count = 20, mark = count): Promise<void> {
    const copy = (name: string) =>
      copyFileSync(path.join(dataDir, name), path.join(dataDir, `${name}.copy`));
    const store = await fill(mark);
    for (const name of names) copy(name);
    for (let i = mark; i < count; i++) await put(store, `o${i}`);
    for (const name of names.slice(0, 2)) copy(name);
    await store.close();
    for (const name of names)
      copyFileSync(path.join(dataDir, `${name}.copy`), path.join(dataDir, name));
  }
  const log = () => `${file}-wal`;
  const open = async () => {
    const store = new Store(dataDir);
    const names = store.list("/things").length;
    await store.close();
    return names;
  };

  test("is replayed", async () => {
    await crashed();
    expect(await open()).toBe(20);
  });

  test.each([
    ["its first half", (bytes: Buffer) => void (bytes[20_000] = (bytes[20_000] ?? 0) ^ 1)],
    ["its header", (bytes: Buffer) => void (bytes[18] = (bytes[18] ?? 0) ^ 1)],
    ["a page of zeros in it", (bytes: Buffer) => void bytes.fill(0, 12_000, 16_000)],
  ])("with damage in %s is refused: later writes would be forgotten", async (_where, change) => {
    await crashed();
    alter(change, log());
    expect(() => new Store(dataDir)).toThrow(DamagedStoreError);
    expect(existsSync(log())).toBe(true);
  });

  test("cut within the last transaction is what a crash leaves: all before it is there", async () => {
    await crashed(20, 19);
    truncateSync(log(), readFileSync(log()).length - 100);
    expect(await open()).toBe(19);
  });

  test.each([
    ["deleted", () => rmSync(log()), /its last 20 writes, which were acknowledged, are missing/],
    ["emptied", () => truncateSync(log(), 0), /its last 20 writes/],
    [
      "cut in its middle",
      () => truncateSync(log(), 40_000),
      /has 40000 bytes instead of \d+: the last writes are missing/,
    ],
    [
      "cut by its last transaction, which was acknowledged",
      () => truncateSync(log(), readFileSync(log()).length - 100),
      /the last writes are missing/,
    ],
    [
      "altered in its last transaction, which was acknowledged",
      () => alter((bytes) => void (bytes[bytes.length - 100]! ^= 1), log()),
      /its last 1 writes/,
    ],
  ])("%s is missed, and the store refused", async (_how, change, message) => {
    await crashed();
    change();
    const refusal: unknown = expect.objectContaining({
      name: "DamagedStoreError",
      message: expect.stringMatching(message) as string,
    });
    expect(() => new Store(dataDir)).toThrow(refusal);
  });

  test("is removed by a good end, which a kill right after it does not turn into damage", async () => {
    await crashed();
    const mark = readFileSync(path.join(dataDir, "state.db-acknowledged"));
    expect(await open()).toBe(20);
    expect(existsSync(log())).toBe(false);
    // As if the kill had come before the mark was written.
    writeFileSync(path.join(dataDir, "state.db-acknowledged"), mark);
    expect(await open()).toBe(20);
  });

  test.each([
    ["missing", () => rmSync(path.join(dataDir, "state.db-acknowledged"))],
    ["torn", () => truncateSync(path.join(dataDir, "state.db-acknowledged"), 9)],
    ["older than the log", () => {}],
  ])("is replayed when the mark is %s", async (how, change) => {
    await crashed(20, how === "older than the log" ? 5 : 20);
    change();
    expect(await open()).toBe(20);
  });

  test("without its database is refused", async () => {
    await crashed();
    rmSync(file);
    expect(() => new Store(dataDir)).toThrow(/only its log .* is left/);
  });
});

test("a store of the version before checksums is taken over", async () => {
  const database = new DatabaseSync(file);
  database.exec(`
    CREATE TABLE objects (collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
      revision INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (collection, namespace, name)) WITHOUT ROWID;
    CREATE TABLE meta (revision INTEGER NOT NULL);
    INSERT INTO meta VALUES (7);
    INSERT INTO objects VALUES ('/things', 'ns', 'a', 5, '{"metadata":{"name":"a"}}');
    PRAGMA user_version = 1;
  `);
  database.close();
  const store = new Store(dataDir);
  expect(store.revision).toBe(7);
  await put(store, "b");
  await store.close();
  const again = new Store(dataDir);
  expect(again.list("/things").map(({ name }) => name)).toEqual(["a", "b"]);
  await again.close();
});

test("a snapshot is a store of its own, of one moment", async () => {
  const store = await fill(5);
  const copy = mkdtempSync(path.join(tmpdir(), "snapshot-"));
  const writing = put(store, "late");
  await store.snapshot(path.join(copy, "state.db"));
  await writing;
  await put(store, "later");
  const restored = new Store(copy);
  expect(restored.list("/things").length).toBe(6);
  expect(restored.revision).toBe(6);
  await restored.close();
  await store.close();
  rmSync(copy, { recursive: true });
});

test("a snapshot of many objects leaves the event loop to others, whose writes are not in it", async () => {
  const store = await fill(3);
  const text = "x".repeat(100_000);
  const many = Array.from({ length: 50 }, (_, i) => ({ metadata: { name: `m${i}` }, text }));
  for (const object of many)
    await store.put(
      { collection: "/large", namespace: "", name: object.metadata.name },
      undefined,
      object,
    );
  const copy = mkdtempSync(path.join(tmpdir(), "snapshot-"));
  const file = path.join(copy, "state.db");
  const copied = new AbortController();
  const copying = store.snapshot(file).finally(() => copied.abort());
  const writes = Array.from({ length: 10 }, (_, i) => put(store, `meanwhile${i}`));
  let turns = 0;
  for (; !copied.signal.aborted; turns++) await turn();
  await copying;
  expect(turns).toBeGreaterThan(10);
  await Promise.all(writes);
  const restored = new Store(copy);
  expect([restored.list("/things").length, restored.list("/large").length]).toEqual([3, 50]);
  expect(restored.revision).toBe(53);
  await restored.close();
  await expect(store.snapshot(file)).rejects.toThrow(/EEXIST/);
  await store.close();
  rmSync(copy, { recursive: true });
});
