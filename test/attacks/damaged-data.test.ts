/** Whatever a file of the data directory is, a start works, or ends with a sentence and the way out: never with a stack, never by waiting. */
import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rounds } from "@spry/test-kit";
import { Platform, root } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";

const args = ["--no-example"];
const first = new Platform({ args, isFirst: true });
const base = `${first.dataDir}-base`;
beforeAll(async () => {
  await first.start();
  await first.stop();
  cpSync(first.dataDir, base, { recursive: true, verbatimSymlinks: true });
});
afterAll(async () => {
  await first.remove();
  rmSync(base, { recursive: true, force: true });
});

/** A start on a copy with one damage: what it has printed, and whether it was ready. */
async function startOn(damage: (dataDir: string) => void, before: string[] = []) {
  const dataDir = first.dataDir;
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(base, dataDir, { recursive: true, verbatimSymlinks: true });
  damage(dataDir);
  const zero = ["api", "gateway", "https", "publisher", "registry", "dashboard", "webhook"];
  const ports = zero.map((name) => `--${name}-port=0`);
  const main = path.join(root, "packages/cli/bin/spry.mjs");
  const argv = [...before, process.execPath, main, "up", "--data-dir", dataDir];
  const child = spawn(argv[0] ?? "", [...argv.slice(1), ...ports, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let isReady = false;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (isReady || !output.includes("Ctrl-C stops")) return;
      isReady = true;
      child.kill("SIGINT");
    });
  const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
  const signal = await new Promise((resolve) => child.once("close", (_code, how) => resolve(how)));
  clearTimeout(late);
  expect(signal, output).toBeNull();
  expect(output).not.toMatch(/\n\s+at .*:\d+|internal error/);
  if (!isReady) expect(output).toMatch(/^error: [^]+\n {7}\S/m);
  await expect.poll(() => processesOf(dataDir), { timeout: 20_000 }).toEqual([]);
  return { output, isReady };
}

const damages: Record<string, (file: string) => void> = {
  empty: (file) => writeFileSync(file, ""),
  garbage: (file) =>
    writeFileSync(
      file,
      Buffer.from(Array.from({ length: 700 }, (_, at) => (at * 7919 + 13) % 256)),
    ),
  "another document": (file) => writeFileSync(file, "[null]"),
  "cut off": (file) =>
    writeFileSync(file, readFileSync(file).subarray(0, readFileSync(file).length >> 1)),
  missing: (file) => rmSync(file),
  "a directory": (file) => (rmSync(file), mkdirSync(path.join(file, "x"), { recursive: true })),
  "a named pipe": (file) => (rmSync(file), execFileSync("mkfifo", [file])),
  "a link to nowhere": (file) => (rmSync(file), symlinkSync("/nowhere/x", file)),
};

/** Of the images and blobs, whose damages `unpack` and registry have rows for, nothing. */
const files = () =>
  readdirSync(base, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(base, path.join(entry.parentPath, entry.name)))
    .filter((name) => !/^(?:node|registry\/(?:blobs|repositories)|logs)\//.test(name))
    .sort();

test("each file, damaged in each way", async () => {
  const all = files().flatMap((file) => Object.keys(damages).map((how) => ({ file, how })));
  // In quick runs, another one of each kind for each file: together they are all ways and all files.
  const step = rounds({ quick: 23, full: 1 });
  const chosen = all.filter((_, at) => at % step === 0);
  expect(chosen.length).toBeGreaterThan(5);
  for (const { file, how } of chosen)
    await startOn((dataDir) => damages[how]?.(path.join(dataDir, file))).catch((error: unknown) => {
      throw new Error(`${file}, ${how}`, { cause: error });
    });
}, 1_800_000);

test("a damaged key of ServiceAccounts is named, and once it is removed the start works", async () => {
  const key = (dataDir: string) => path.join(dataDir, "api/service-account.key");
  const { output } = await startOn((dataDir) => writeFileSync(key(dataDir), "damaged"));
  expect(output).toContain("service-account.key holds no private key for ServiceAccount tokens");
  expect(output).toContain("or remove it");
  expect((await startOn((dataDir) => rmSync(key(dataDir)))).isReady).toBe(true);
}, 120_000);

test.skipIf(process.platform !== "linux")(
  "a limit of open files that is too low is named",
  async () => {
    const { output } = await startOn(() => {}, ["prlimit", "--nofile=64"]);
    expect(output).toContain("the limit of open files is 64, and a platform needs 512 or more");
  },
  120_000,
);
