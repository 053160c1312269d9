import { expect, test } from "vitest";
import { MultiMap } from "./multi-map.ts";

test("a key has the values that were added and not deleted, each once", () => {
  const map = new MultiMap<string, string>();
  expect(map.get("a")).toEqual([]);
  map.add("a", "1");
  map.add("a", "1");
  expect(map.get("a")).toEqual(["1"]);
  map.add("a", "2");
  map.add("a", "3");
  map.add("b", "1");
  expect(map.get("a")).toEqual(["1", "2", "3"]);
  map.delete("a", "1");
  map.delete("a", "none");
  expect(map.get("a")).toEqual(["2", "3"]);
  map.delete("a", "2");
  map.delete("a", "2");
  expect(map.get("a")).toEqual(["3"]);
  map.delete("a", "3");
  map.delete("none", "1");
  expect(map.get("a")).toEqual([]);
  expect(map.get("b")).toEqual(["1"]);
  expect(map.size).toBe(1);
});
