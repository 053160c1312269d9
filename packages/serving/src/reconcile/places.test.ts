import { expect, test } from "vitest";
import { Places } from "./places.ts";

/** How many of so many Services get a place. */
function takeMany(places: Places, namespace: string, count: number): number {
  const services = Array.from({ length: count }, (_, index) => `${namespace}/${index}`);
  return services.filter((service) => places.take(service) !== undefined).length;
}

test.each(["port", "address"] as const)(
  "a namespace that wants every %s leaves as many to others as it has",
  (kind) => {
    const places = new Places(kind, 12_000);
    expect(takeMany(places, "greedy", 12_000)).toBe(6_000);
    expect(takeMany(places, "second", 12_000)).toBe(3_000);
    expect(takeMany(places, "modest", 10)).toBe(10);
    expect(places.hasRefused("greedy/11999")).toBe(true);
  },
);

test("what is given back can be taken by who was refused", () => {
  const places = new Places("port", 2);
  const first = places.take("a/first");
  expect(places.take("a/second")).toBeUndefined();
  expect(places.refused).toEqual(["a/second"]);
  expect(places.release("a/first")).toBe(true);
  expect(places.take("a/second")).toBeDefined();
  expect(places.refused).toEqual([]);
  expect(places.take("b/third")).toBeDefined();
  expect(first).toMatch(/^2\d{4}$/);
});
