import { expect, test } from "vitest";
import { Snapshots } from "./snapshots.ts";

const MiB = 1024 * 1024;

test("the oldest reader is given up when what has been replaced since takes too much", () => {
  const snapshots = new Snapshots();
  const lost: string[] = [];
  snapshots.open("a", () => lost.push("first"));
  snapshots.note("a", 40 * MiB);
  snapshots.open("a", () => lost.push("second"));
  snapshots.open("", () => lost.push("of all"));
  snapshots.note("a", 30 * MiB);
  expect(lost).toEqual(["first"]);
  snapshots.note("b", 40 * MiB);
  expect(lost).toEqual(["first", "of all"]);
});

test("a reader that has finished is not given up, and readers of other namespaces stay", () => {
  const snapshots = new Snapshots();
  const lost: string[] = [];
  const close = snapshots.open("a", () => lost.push("a"));
  snapshots.open("b", () => lost.push("b"));
  close();
  snapshots.note("a", 1000 * MiB);
  expect(lost).toEqual([]);
});
