import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { Jails } from "./jails.ts";

describe.skipIf(process.platform !== "linux")("directories in memory", () => {
  test("what is left of a deleted data directory goes with the next start of any platform", () => {
    const memory = temporaryDirectory();
    const [kept, deleted] = [temporaryDirectory(), temporaryDirectory()];
    rmSync(deleted, { recursive: true });
    const place = (name: string, owner?: string, pod?: string) => {
      const dir = path.join(memory, name);
      mkdirSync(dir, { mode: 0o700 });
      if (owner) symlinkSync(owner, path.join(dir, ".data-dir"));
      if (pod) mkdirSync(path.join(dir, pod, "main"), { recursive: true });
    };
    place("spry-1", deleted, "pod");
    place("spry-2", deleted);
    place("spry-3", kept, "pod");
    place("spry-4");
    place("spry-5", undefined, "pod");
    place("other", deleted);
    place("spry-6", deleted);
    // Of another user, or open to others: not made by a platform of this user.
    chmodSync(path.join(memory, "spry-6"), 0o755);
    Jails.removeOrphans(memory);
    expect(readdirSync(memory).sort()).toEqual(["other", "spry-3", "spry-5", "spry-6"]);
  });

  test("nothing stays when the last Pod has gone", async () => {
    const dataDir = temporaryDirectory();
    const jails = new Jails(dataDir);
    const jail = jails.of("pod", "main");
    mkdirSync(jail, { recursive: true });
    const own = path.dirname(path.dirname(jail));
    jails.remove("pod");
    expect(existsSync(own)).toBe(false);
    mkdirSync(jails.of("other", "main"), { recursive: true });
    await new Jails(dataDir).removeAllBut(new Set());
    expect(existsSync(own)).toBe(false);
  });
});
