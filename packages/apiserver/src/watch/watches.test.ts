import { expect, test } from "vitest";
import { ownLine } from "./line.ts";
import { WatchStream } from "./watch-stream.ts";
import { Watches } from "./watches.ts";

const kib = 1024;
const line = (size: number, letter = "x") => ownLine(Buffer.alloc(size, letter));

function opened(watches: Watches, owner = "") {
  const seen = { cut: false, closed: false };
  const errorLine = () => Buffer.from("410\n");
  const stream = new WatchStream(watches, errorLine, () => (seen.closed = true), owner);
  stream.attach({ ready: () => {}, cut: () => (seen.cut = true) });
  const read = (limit = 100 * kib) => {
    const bytes = stream.take(limit);
    return bytes ? Buffer.from(bytes).toString("latin1") : bytes;
  };
  return { stream, seen, read };
}

test("an event that waits in many watches counts once", () => {
  const watches = new Watches(100 * kib);
  const readers = Array.from({ length: 50 }, () => opened(watches));
  const shared = line(90 * kib);
  for (const { stream } of readers) stream.push(shared);
  expect(readers.filter(({ stream }) => stream.isEnded)).toHaveLength(0);
  expect(readers.every(({ read }) => read()?.length === 90 * kib)).toBe(true);
});

test("above the bound the watches that lag the most end with 410, and the others go on", () => {
  const watches = new Watches(100 * kib);
  const slow = opened(watches);
  const quick = opened(watches);
  for (let index = 0; index < 12; index++) {
    const shared = line(10 * kib);
    slow.stream.push(shared);
    quick.stream.push(shared);
    expect(quick.read()?.length).toBe(10 * kib);
  }
  expect(slow.read()).toBe("410\n");
  expect(slow.read()).toBeNull();
  expect(slow.seen.closed).toBe(true);
  quick.stream.push(line(10, "y"));
  expect(quick.read()).toBe("yyyyyyyyyy");
});

test("an event that is being written comes whole before the 410", () => {
  const watches = new Watches(100 * kib);
  const { stream, read } = opened(watches);
  stream.push(line(20 * kib));
  expect(read(kib)?.length).toBe(kib);
  for (let index = 0; index < 11; index++) stream.push(line(10 * kib, "y"));
  expect(read()).toBe(`${"x".repeat(19 * kib)}410\n`);
  expect(read()).toBeNull();
});

test("where even that is too much, the connection is cut", () => {
  const watches = new Watches(100 * kib);
  const { stream, read, seen } = opened(watches);
  stream.push(line(90 * kib));
  read(kib);
  const other = opened(watches);
  other.stream.push(line(60 * kib));
  other.read(kib);
  expect(seen.cut).toBe(true);
  expect(read()).toBeNull();
});

test("what is there at the beginning is written as it is read", () => {
  const watches = new Watches(100 * kib);
  const { stream, read } = opened(watches);
  let written = 0;
  const make = () => {
    written++;
    return line(50 * kib);
  };
  stream.pushLater({ count: 1000, line: make });
  stream.push(line(3, "y"));
  read(kib);
  expect(written).toBe(1);
  let length = kib;
  let last: string | undefined;
  for (let text = read(); text; text = read()) {
    length += text.length;
    last = text.at(-1);
  }
  expect([length, last]).toEqual([1000 * 50 * kib + 3, "y"]);
  expect(written).toBe(1000);
});

test("a watch that its client has left holds nothing", () => {
  const watches = new Watches(100 * kib);
  for (let index = 0; index < 20; index++) {
    const { stream, seen } = opened(watches);
    stream.push(line(60 * kib));
    stream.cancel();
    expect(seen).toEqual({ closed: true, cut: false });
  }
});

test("what a watch has still to show counts as its lag: one that reads little does not end others", () => {
  const watches = new Watches(100 * kib);
  const stalled = opened(watches);
  stalled.stream.pushLater({ count: 6000, line: () => line(10) });
  const other = opened(watches);
  other.stream.push(line(20 * kib));
  expect([stalled.stream.isEnded, other.stream.isEnded]).toEqual([true, false]);
});

test("when there are as many watches as there may be, who has the most loses its oldest", () => {
  const watches = new Watches(100 * kib, 4);
  const many = Array.from({ length: 3 }, () => opened(watches, "mallory"));
  const one = opened(watches, "alice");
  expect(() => watches.makeRoom("mallory")).toThrow("this server has 4 open watches, its limit");
  watches.makeRoom("bob");
  expect([...many, one].map(({ seen }) => seen.cut)).toEqual([true, false, false, false]);
  expect(() => watches.makeRoom("bob")).not.toThrow();
});

test("the watches of who holds the most end first, even if each of them holds little", () => {
  const watches = new Watches(100 * kib);
  const many = Array.from({ length: 9 }, () => opened(watches, "mallory"));
  const one = opened(watches, "alice");
  one.stream.push(line(20 * kib));
  for (const { stream } of many) stream.push(line(10 * kib));
  expect(one.read()?.length).toBe(20 * kib);
  expect(many.filter(({ stream }) => stream.isEnded).length).toBeGreaterThan(0);
});
