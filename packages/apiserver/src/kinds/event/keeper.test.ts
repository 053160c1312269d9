import { ManualClock, silentLogger } from "@spry/kube";
import { afterEach, expect, test } from "vitest";
import { Store } from "../../store/store.ts";
import { EventKeeper } from "./keeper.ts";

const hour = 3_600_000;
const start = Date.parse("2026-01-01T00:00:00Z");
const closings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

function keeperOf(limits?: { ttlMs: number; max: number }) {
  const store = new Store(":memory:");
  const clock = new ManualClock(start);
  const keeper = new EventKeeper({ store, clock, log: silentLogger }, limits);
  closings.push(
    () => store.close(),
    () => keeper.stop(),
  );
  const place = (namespace: string, name: string) => ({ collection: "/events", namespace, name });
  const event = (namespace: string, name: string, lastTimestamp?: string) =>
    store.put(place(namespace, name), store.get(place(namespace, name)), {
      metadata: { namespace, name },
      lastTimestamp,
    });
  const names = () => store.list("/events").map(({ namespace, name }) => `${namespace}/${name}`);
  /** Removals follow one another, each with its own sync. */
  const settled = (...expected: string[]) => expect.poll(names).toEqual(expected);
  return { store, clock, keeper, event, names, settled };
}

test("an Event is gone an hour after it was written last", async () => {
  const { clock, keeper, event, names, settled } = keeperOf();
  keeper.start();
  await event("shop", "old");
  await event("shop", "repeated");
  await clock.advance(hour / 2);
  await event("shop", "repeated");
  await event("till", "new");
  await clock.advance(hour / 2 - 1);
  expect(names()).toHaveLength(3);
  await clock.advance(61_000);
  await settled("shop/repeated", "till/new");
  await clock.advance(hour / 2);
  await settled();
});

test("Events of before a start are as old as they say", async () => {
  const { clock, keeper, event, settled } = keeperOf();
  await event("shop", "old", "2025-12-31T22:59:59Z");
  await event("shop", "young", "2025-12-31T23:30:00Z");
  await event("shop", "of-the-future", "2126-01-01T00:00:00Z");
  keeper.start();
  await clock.advance(60_000);
  await settled("shop/of-the-future", "shop/young");
});

test("too many push out the oldest of the namespace that has most", async () => {
  const { clock, keeper, event, settled } = keeperOf({ ttlMs: hour, max: 3 });
  for (const name of ["a", "b", "c", "d"]) await event("noisy", name);
  await event("quiet", "only");
  keeper.start();
  await clock.advance(60_000);
  await settled("noisy/c", "noisy/d", "quiet/only");
});

test("a flood is kept within bounds while it lasts", async () => {
  const { keeper, event, names } = keeperOf({ ttlMs: hour, max: 10 });
  keeper.start();
  await event("quiet", "only");
  await Promise.all(Array.from({ length: 1200 }, (_, index) => event("noisy", `${index}`)));
  await expect.poll(() => names().length).toBeLessThanOrEqual(510);
  expect(names()).toContain("quiet/only");
});

test("one that a full disk has kept is removed as soon as there is room, before others", async () => {
  const { store, clock, keeper, event, settled } = keeperOf();
  const remove = store.remove.bind(store);
  store.remove = () => Promise.reject(new Error("the disk is full"));
  keeper.start();
  await event("shop", "old");
  await clock.advance(hour / 2);
  await event("shop", "young");
  await clock.advance(hour / 2 + 60_000);
  await settled("shop/old", "shop/young");
  store.remove = remove;
  await clock.advance(60_000);
  await settled("shop/young");
});
