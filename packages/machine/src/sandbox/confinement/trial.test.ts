import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "@spry/kube";
import { findConfinement } from "./trial.ts";

/** Tries with attempts that fail so, one after the other; how many there were, and what came of them. */
async function find(...failures: object[]) {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-trial-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  let count = 0;
  const attempt = () => {
    const failure = failures[count++];
    return failure ? Promise.reject(failure) : Promise.resolve();
  };
  const atOnce = {
    ...systemClock,
    after: (_: number, work: () => void) => systemClock.after(0, work),
  };
  const found = await findConfinement(dir, attempt, atOnce).catch((error: Error) => error);
  return { found, count };
}

const busy = { stderr: "sh: 0: Cannot fork: Resource temporarily unavailable" };
const forbidden = { stderr: "unshare: unshare failed: Operation not permitted\n" };

describe.skipIf(process.platform !== "linux")("the trial of what keeps processes apart", () => {
  test("a reason that does not pass by itself: Pods are plain processes", async () => {
    const { found, count } = await find(forbidden);
    expect(found).toMatch(/Operation not permitted/);
    expect(count).toBe(1);
  });

  test.each([1, 2])("a reason that has passed after %i attempts", async (failures) => {
    const { found, count } = await find(...Array.from({ length: failures }, () => busy));
    expect(found).toHaveProperty("kind");
    expect(count).toBe(failures + 1);
  });

  test.each([
    [busy, /Cannot fork/],
    [new Error("ENOSPC: no space left on device, write"), /ENOSPC/],
    [{ killed: true }, /exceeded its time limit \(30 s\)/],
  ])("a reason that stays, but could pass, stops the start: %o", async (failure, why) => {
    const { found, count } = await find(failure, failure, failure);
    expect(found).toBeInstanceOf(Error);
    expect((found as Error).message).toMatch(why);
    expect(count).toBe(3);
  });
});
