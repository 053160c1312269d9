/** A process may end at any moment: what was acknowledged is there afterwards, and what is there was once written. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { Store } from "./store.ts";
import { Expected, killed, writing } from "./testing/crashing-writer.ts";

test("killed twelve times in the middle of 500 writes and more, it has every acknowledged one", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "crash-"));
  const expected = new Expected();
  for (let round = 1; round <= 12; round++) {
    const killAfter = expected.acknowledged + 20 + ((round * 37) % 50);
    const log = path.join(dataDir, `round-${round}.log`);
    const writes = killAfter - expected.acknowledged;
    await killed(await writing(dataDir, { seed: round, log, writes }));
    expected.hear(readFileSync(log, "utf8"));
    const store = new Store(dataDir);
    expect(expected.differences(store)).toEqual([]);
    expected.settle(store);
    await store.close();
  }
  expect(expected.acknowledged).toBeGreaterThan(500);
  rmSync(dataDir, { recursive: true });
}, 120_000);
