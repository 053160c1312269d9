/**
 * Power may go at any moment. The store is on a disk that is a file: what the system keeps in its memory and has not yet
 * written to the disk is not in that file, and so a copy of it is what a machine would find when its power is back.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { Store } from "./store.ts";
import { Expected, killed, writing } from "./testing/crashing-writer.ts";

const reason =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? "mounting a file system needs root on Linux"
    : existsSync("/dev/loop-control") && existsSync("/usr/sbin/mkfs.ext4")
      ? undefined
      : "there are no loop devices, or no mkfs.ext4";

const scratch = mkdtempSync(path.join(tmpdir(), "power-"));
const mountPoint = path.join(scratch, "disk");
const command = (file: string, ...args: string[]) => execFileSync(file, args, { stdio: "pipe" });

/** Nothing is written out by the mere passing of time while a test runs. */
const mount = (image: string) => command("mount", "-o", "loop,commit=300", image, mountPoint);
const unmount = () => command("umount", mountPoint);

afterAll(() => {
  // A test that failed leaves it behind, with files open.
  if (!reason && readFileSync("/proc/mounts", "utf8").includes(mountPoint)) {
    command("umount", "-l", mountPoint);
  }
  rmSync(scratch, { recursive: true });
});

test.skipIf(reason !== undefined)(
  `a machine that loses its power six times has every acknowledged write${reason ? ` (skipped: ${reason})` : ""}`,
  async () => {
    mkdirSync(mountPoint);
    const disk = (round: number) => path.join(scratch, `disk-${round}`);
    command("truncate", "--size=64M", disk(0));
    command("mkfs.ext4", "-q", disk(0));
    const dataDir = path.join(mountPoint, "api");
    const expected = new Expected();
    for (let round = 1; round <= 6; round++) {
      mount(disk(round - 1));
      const log = path.join(scratch, `round-${round}.log`);
      const writes = 20 + ((round * 37) % 50);
      const child = await writing(dataDir, { seed: round, log, writes });
      child.kill("SIGSTOP");
      while (!isStopped(child.pid!)) await pause(1);
      expected.hear(readFileSync(log, "utf8"));
      copyFileSync(disk(round - 1), disk(round));
      await killed(child);
      unmount();
      rmSync(disk(round - 1));
      mount(disk(round));
      const store = new Store(dataDir);
      expect(expected.differences(store)).toEqual([]);
      expected.settle(store);
      await store.close();
      unmount();
    }
    expect(expected.acknowledged).toBeGreaterThan(200);
  },
  120_000,
);

/** All of its threads, one of which may be in the middle of a sync. */
function isStopped(pid: number): boolean {
  const threads = command("ps", "-L", "-o", "state=", "-p", String(pid)).toString().trim();
  return /^[T\s]+$/.test(threads);
}
