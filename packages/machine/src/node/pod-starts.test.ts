import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ManualClock, silentLogger } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { PodStarts } from "./pod-starts.ts";

const dir = () => path.join(temporaryDirectory(), "starting");

function open(at: string, clock = new ManualClock()): { starts: PodStarts; clock: ManualClock } {
  const starts = new PodStarts({ dir: at, clock, log: silentLogger });
  starts.open();
  return { starts, clock };
}

/** An agent that is killed while these Pods are being started; the others wait. */
function killedDuring(at: string, ...uids: string[]): void {
  const { starts } = open(at);
  for (const uid of uids) starts.begin(uid, `default/${uid}`);
}

describe("after an agent that was killed", () => {
  test("what was being started waits until others have begun, and then for each other", async () => {
    const at = dir();
    killedDuring(at, "a", "b");
    const { starts, clock } = open(at);
    expect(starts.suspicion("c")).toBeUndefined();
    expect(starts.suspicion("a")?.message).toBe(
      "the platform ended while this Pod was being started: it is tried after all others, alone",
    );
    await clock.advance(1_000);
    starts.begin("c", "default/c");
    expect(starts.suspicion("a")).toBeDefined();
    starts.end("c");
    await clock.advance(1_000);
    expect(starts.suspicion("a")).toBeUndefined();
    starts.begin("a", "default/a");
    expect(starts.suspicion("b")).toBeDefined();
    starts.end("a");
    await clock.advance(1_000);
    expect(starts.suspicion("b")).toBeUndefined();
    expect(readdirSync(at)).toEqual(["b"]);
  });

  test("a start that takes long holds up no suspect for more than half a minute", async () => {
    const at = dir();
    killedDuring(at, "a");
    const { starts, clock } = open(at);
    starts.begin("slow", "default/slow");
    await clock.advance(29_000);
    expect(starts.suspicion("a")).toBeDefined();
    await clock.advance(1_000);
    expect(starts.suspicion("a")).toBeUndefined();
  });

  test.each([
    { deaths: 1, pauseMs: 1_000 },
    { deaths: 2, pauseMs: 10_000 },
    { deaths: 3, pauseMs: 20_000 },
    { deaths: 9, pauseMs: 300_000 },
  ])("a suspect waits longer the more agents it has seen end: $deaths", async (row) => {
    const at = dir();
    for (let death = 0; death < row.deaths; death++) killedDuring(at, "a");
    const { starts, clock } = open(at);
    await clock.advance(row.pauseMs - 1);
    expect(starts.suspicion("a")).toBeDefined();
    await clock.advance(1);
    expect(starts.suspicion("a")).toBeUndefined();
  });

  test("a suspect that only waited is not blamed for the next death", () => {
    const at = dir();
    killedDuring(at, "a", "b");
    killedDuring(at, "a");
    const { starts } = open(at);
    expect(starts.suspicion("a")?.message).toContain("2 times in a row");
    expect(starts.suspicion("b")?.message).not.toContain("in a row");
  });

  test("a suspect that has started is none any more", async () => {
    const at = dir();
    killedDuring(at, "a");
    const { starts, clock } = open(at);
    starts.begin("a", "default/a");
    starts.end("a");
    await clock.advance(1_000);
    expect(readdirSync(at)).toEqual([]);
    expect(open(at).starts.suspicion("a")).toBeUndefined();
  });
});

test("an agent that ends as it should leaves no suspects", () => {
  const at = dir();
  const { starts } = open(at);
  starts.begin("a", "default/a");
  starts.release();
  expect(readdirSync(at)).toEqual([]);
});

test("a note that a power failure has cut off is one of a start that was under way", () => {
  const at = dir();
  killedDuring(at);
  writeFileSync(path.join(at, "a"), '{"pod":');
  expect(open(at).starts.suspicion("a")).toBeDefined();
});

test("notes of Pods that are gone are removed", () => {
  const at = dir();
  killedDuring(at, "a", "b");
  const { starts } = open(at);
  starts.keepOnly((uid) => uid === "b");
  expect(readdirSync(at)).toEqual(["b"]);
});
