/** One platform uses a data directory, whatever an earlier one has left there. */
import { spawn, execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { identify } from "@spry/kube";
import { rounds } from "../../../../test/kit/index.ts";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { lockDataDir, ownerOf } from "./data-dir-lock.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "lock-"));
});
afterEach(() => rmSync(root, { recursive: true }));
const at = (name: string) => path.join(root, name);

/** A process that takes the lock for each line `take`, says whether it has it, and gives it back for `give`. */
function starter() {
  const program = `
    import { createInterface } from "node:readline";
    import { lockDataDir } from ${JSON.stringify(new URL("./data-dir-lock.ts", import.meta.url).href)};
    let unlock;
    createInterface({ input: process.stdin }).on("line", (line) => {
      try {
        if (line === "take") unlock = lockDataDir(${JSON.stringify(root)});
        else { unlock?.(); unlock = undefined; }
        console.log(line === "take" ? "held" : "given back");
      } catch (error) { console.log(error.name + ": " + error.message); }
    });
    console.log("waiting");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...text.split("\n").filter(Boolean));
  });
  return { child, lines, pid: child.pid ?? 0 };
}

const saidAll = (all: ReturnType<typeof starter>[], count: number) =>
  expect.poll(() => all.every(({ lines }) => lines.length === count), { interval: 5 }).toBe(true);

test("of eight processes that start at once one has the lock, and the others say who", async () => {
  const all = Array.from({ length: 8 }, starter);
  await saidAll(all, 1);
  const count = rounds({ quick: 10, full: 50 });
  for (let round = 1; round <= count; round++) {
    // What a platform has left that was killed.
    writeFileSync(at("lock"), JSON.stringify({ ...identify(process.pid), startTime: "1" }));
    for (const { child } of all) child.stdin.write("take\n");
    await saidAll(all, 2 * round);
    const holders = all.filter(({ lines }) => lines.at(-1) === "held");
    expect(holders).toHaveLength(1);
    expect(ownerOf(root)?.pid).toBe(holders[0]?.pid);
    for (const { lines } of all)
      expect(lines.at(-1)).toMatch(/^(?:held|UserError: another Spry .* with the data directory )/);
    if (round === count) break;
    for (const { child } of all) child.stdin.write("give\n");
    await saidAll(all, 2 * round + 1);
  }
  for (const { child } of all) child.kill("SIGKILL");
  await expect.poll(() => ownerOf(root)).toBeUndefined();
  lockDataDir(root)();
});

const left: [what: string, leave: (file: string) => void][] = [
  ["is empty", (file) => writeFileSync(file, "")],
  ["is garbage", (file) => writeFileSync(file, "\0\xff{")],
  ["is null", (file) => writeFileSync(file, "null")],
  ["names no process", (file) => writeFileSync(file, '{"pid":0,"startTime":"1"}')],
  [
    "names the machine's first process",
    (file) => writeFileSync(file, JSON.stringify({ ...identify(process.pid), pid: 1 })),
  ],
  ["has a number alone", (file) => writeFileSync(file, JSON.stringify({ pid: process.ppid }))],
  [
    "is of another boot",
    (file) => writeFileSync(file, JSON.stringify({ ...identify(process.ppid), boot: "another" })),
  ],
  ["is read-only", (file) => (writeFileSync(file, "{}"), chmodSync(file, 0o400))],
  ["is an empty directory", (file) => mkdirSync(file)],
  ["is a link to nowhere", (file) => symlinkSync("/nowhere/lock", file)],
];

test.each(left)("a lock file that %s holds up no start", (_what, leave) => {
  leave(at("lock"));
  const unlock = lockDataDir(root);
  expect(JSON.parse(readFileSync(at("lock"), "utf8"))).toEqual(identify(process.pid));
  unlock();
  expect(existsSync(at("lock"))).toBe(false);
});

test("a link is replaced, and what it leads to stays", () => {
  writeFileSync(at("other"), "theirs");
  symlinkSync(at("other"), at("lock"));
  lockDataDir(root)();
  expect(readFileSync(at("other"), "utf8")).toBe("theirs");
});

test("what cannot be a lock is named, with the way out", () => {
  mkdirSync(at("lock"));
  writeFileSync(at("lock/something"), "");
  expect(() => lockDataDir(root)).toThrow(`${at("lock")} is a directory`);
  rmSync(at("lock"), { recursive: true });
  writeFileSync(at("lock.db"), "x".repeat(5000));
  expect(() => lockDataDir(root)).toThrow(/lock\.db is damaged/);
});

test("while a process has the lock, no other file in its place gives it to another", async () => {
  const holder = starter();
  await expect.poll(() => holder.lines.length).toBe(1);
  holder.child.stdin.write("take\n");
  await expect.poll(() => holder.lines[1]).toBe("held");
  writeFileSync(at("lock"), "garbage");
  expect(() => lockDataDir(root)).toThrow("another Spry has just begun to run");
  writeFileSync(at("lock"), JSON.stringify(identify(holder.pid)));
  rmSync(at("lock.db"));
  expect(() => lockDataDir(root)).toThrow(`another Spry (process ${holder.pid}) is running`);
});

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const why = isRoot ? "" : " (skipped: mounting needs root on Linux)";

test.skipIf(!isRoot)(`on a full disk the lock is given back${why}`, () => {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", root]);
  try {
    lockDataDir(root)();
    const { bavail, bsize } = statfsSync(root);
    writeFileSync(at("filler"), Buffer.alloc(bavail * bsize));
    expect(() => lockDataDir(root)).toThrow(/ENOSPC/);
    rmSync(at("filler"));
    lockDataDir(root)();
  } finally {
    execFileSync("umount", ["-l", root]);
  }
});
