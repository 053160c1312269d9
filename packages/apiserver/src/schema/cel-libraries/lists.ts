import { deepEqual } from "@spry/kube";
import { Optional } from "@marcbachmann/cel-js";
import { charge } from "../cel-meter.ts";
import { CelNamespace, type Library } from "./library.ts";

class ListNames extends CelNamespace {}

type List = readonly unknown[];
/** As many as a list may have in a literal. */
const maxRange = 1000n;

function flattened(list: List, depth: bigint): unknown[] {
  if (depth < 0n) throw new Error("level must be non-negative");
  return list.flat(Number(depth));
}

function sorted(list: List): unknown[] {
  const kinds = new Set(list.map((each) => typeof each));
  if (kinds.size > 1) throw new Error("list elements must have the same type");
  return list.toSorted((a, b) => ((a as number) < (b as number) ? -1 : a === b ? 0 : 1));
}

function slice(list: List, start: bigint, end: bigint): unknown[] {
  if (start < 0n || end < start || end > BigInt(list.length))
    throw new Error(`cannot slice(${start}, ${end}), list is length ${list.length}`);
  return list.slice(Number(start), Number(end));
}

function range(count: bigint): bigint[] {
  if (count > maxRange) throw new Error(`lists.range: at most ${maxRange}`);
  return Array.from({ length: Math.max(0, Number(count)) }, (_, index) => BigInt(index));
}

function distinct(list: List): unknown[] {
  charge((list.length * list.length) / 2);
  return list.filter(
    (each, index) => list.findIndex((other) => other === each || deepEqual(other, each)) === index,
  );
}

/** `cel-go/ext/lists.go`, without `sortBy`. */
export const lists: Library = {
  types: { "cel.ListNames": ListNames },
  constants: { lists: { type: "cel.ListNames", value: new ListNames() } },
  functions: [
    ["cel.ListNames.range(int): list<int>", (_: ListNames, count: bigint) => range(count)],
    ["list.slice(int, int): list<dyn>", slice],
    ["list.flatten(): list<dyn>", (list: List) => flattened(list, 1n)],
    ["list.flatten(int): list<dyn>", flattened],
    ["list.sort(): list<dyn>", sorted],
    ["list.distinct(): list<dyn>", distinct],
    ["list.reverse(): list<dyn>", (list: List) => list.toReversed()],
    ["list.first(): optional<dyn>", (list: List) => Optional.of(list[0])],
    ["list.last(): optional<dyn>", (list: List) => Optional.of(list.at(-1))],
  ],
};
