/** The disk under a whole platform is full: writes get a Status each, Functions go on, and space makes all good again. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { Platform, run, root } from "../support/platform.ts";

const reason =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? "mounting a file system needs root on Linux"
    : undefined;
const disk = mkdtempSync(path.join(tmpdir(), "full-"));
const platform = new Platform({ dataDir: path.join(disk, "data"), args: [] });
afterAll(async () => {
  await platform.stop();
  if (!reason) spawnSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true, force: true });
});

test.skipIf(reason !== undefined)(
  `a full disk breaks no connection, stops no Function, and is over with the first free bytes${reason ? ` (skipped: ${reason})` : ""}`,
  async () => {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=600m", "tmpfs", disk]);
    mkdirSync(platform.dataDir, { mode: 0o700 });
    await platform.start();
    const filler = path.join(disk, "filler");
    spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4096"]);
    for (let i = 0; i < 5; i++) {
      const literal = `--from-literal=a=${"x".repeat(9_000)}`;
      const { code, stderr } = await platform.kubectl([
        "create",
        "configmap",
        `full-${i}`,
        literal,
      ]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/ is full: free space on it and try again/),
      ]);
    }
    expect(await platform.call("hello.default")).toMatchObject({ status: 200 });
    expect(await platform.k("get function hello -o name")).toContain("hello");
    // Another start on that disk says so in one sentence.
    const { code, stderr } = await run(process.execPath, [
      path.join(root, "packages/cli/bin/spry.mjs"),
      "up",
      "--data-dir",
      path.join(disk, "other"),
      "--api-port=0",
      "--gateway-port=0",
      "--registry-port=0",
    ]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^error: the data directory .*other has no space left\n/),
    ]);
    rmSync(filler);
    await platform.k("create configmap after --from-literal=a=b");
    await platform.kill();
    await platform.start();
    expect(await platform.k("get configmap after -o name")).toContain("after");
    expect(await platform.k("get configmaps -o name")).not.toContain("full-");
  },
  120_000,
);
