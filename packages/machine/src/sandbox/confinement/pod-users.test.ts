import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { PodUsers } from "./pod-users.ts";

const why =
  process.platform === "linux" && process.getuid?.() === 0 ? "" : " (skipped: needs root)";
const [one, other] = ["127.0.0.2", "127.0.0.3"];

async function start() {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-users-")));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const dataDir = path.join(root, "node");
  mkdirSync(dataDir);
  const users = await PodUsers.open(dataDir);
  const place = (ip: string) => {
    const dir = path.join(dataDir, "pods", ip);
    mkdirSync(dir);
    users.close(dir, users.userOf(ip, dir, []));
    return dir;
  };
  const image = (name: string) => {
    const rootDir = path.join(dataDir, "images", name, "rootfs");
    mkdirSync(rootDir, { recursive: true });
    writeFileSync(path.join(rootDir, "text"), name);
    return rootDir;
  };
  const run = (ip: string, groups: number[], ...argv: string[]) => {
    const user = users.userOf(ip, path.join(dataDir, "pods", ip), groups);
    const [file = "", ...args] = users.command(user, {
      argv,
      env: { PATH: "/usr/bin:/bin" },
      cwd: "/",
    });
    const { stdout, status } = spawnSync(file, args, { encoding: "utf8" });
    return status === 0 ? stdout : "refused";
  };
  return { root, dataDir, users, place, image, run };
}

describe.skipIf(why !== "")(`users of Pods${why}`, () => {
  test("have other numbers, no rights, and limits of their own", async () => {
    const { place, run } = await start();
    place(one);
    place(other);
    expect(run(one, [], "id", "-u")).not.toBe(run(other, [], "id", "-u"));
    expect(run(one, [], "sh", "-c", "ulimit -u 2>/dev/null || ulimit -p")).toBe("1024\n");
    expect(run(one, [], "grep", "CapEff", "/proc/self/status")).toMatch(/\t0+\n/);
  });

  test("read what is their own Pod's, and nothing of another's", async () => {
    const { place, run } = await start();
    const dir = place(one);
    place(other);
    // Readable for all, in a directory that is not.
    writeFileSync(path.join(dir, "text"), "mine");
    expect(run(one, [], "cat", path.join(dir, "text"))).toBe("mine");
    expect(run(other, [], "cat", path.join(dir, "text"))).toBe("refused");
    expect(run(other, [], "ls", path.dirname(dir))).toBe("refused");
  });

  test("read images that their Pods run, and no others", async () => {
    const { users, place, image, run, dataDir } = await start();
    place(one);
    place(other);
    const [mine, theirs] = [image("a".repeat(64)), image("b".repeat(64))];
    const base = path.join(dataDir, "images", "base-1");
    mkdirSync(base);
    const [group, foreign] = [users.groupOf(mine), users.groupOf(theirs)];
    expect(group).not.toBe(foreign);
    expect(users.groupOf(mine)).toBe(group);
    expect(run(one, [group], "cat", path.join(mine, "text"))).toBe("a".repeat(64));
    expect(run(one, [group], "cat", path.join(theirs, "text"))).toBe("refused");
    expect(run(one, [group], "ls", path.join(dataDir, "images"))).toBe("refused");
    expect(statSync(base).mode & 0o777).toBe(0o700);
  });

  test("are none where they could not reach the data directory", async () => {
    const root = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-users-")));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const dataDir = path.join(root, "closed", "spry", "node");
    mkdirSync(dataDir, { recursive: true });
    chmodSync(path.join(root, "closed"), 0o700);
    await expect(PodUsers.open(dataDir)).rejects.toThrow(/Permission denied|cannot open/);
  });
});
