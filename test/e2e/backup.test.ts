/** `spry backup` and `spry restore`: a platform that is lost comes back with its Functions, and a damaged one says so. */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform, root, run } from "../support/platform.ts";

const spry = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(process.execPath, [
    path.join(root, "packages/cli/bin/spry.mjs"),
    ...args,
  ]);
  return { code, output: stdout + stderr };
};

let scratch: string;
let archive: string;
let platform: Platform;
let jobsBefore: string;
const jobs = () => platform.k("get jobs -o jsonpath={.items[*].metadata.uid}");

beforeAll(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), "backup-"));
  archive = path.join(scratch, "saved.tar");
  platform = new Platform({ dataDir: path.join(scratch, "data") });
  await platform.start();
  const source = "module.exports = { main: () => 'still here' }";
  await platform.k("apply -f -", functionManifest("kept", source));
  await platform.k("wait --for=condition=Running function/kept --timeout=60s");
  jobsBefore = await jobs();
});
afterAll(async () => {
  await platform.stop();
  rmSync(scratch, { recursive: true });
});

test("a running platform is saved to a file that only its owner can read", async () => {
  const { code, output } = await spry("backup", archive, "--data-dir", platform.dataDir);
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("saved ") });
  expect(statSync(archive).mode & 0o777).toBe(0o600);
  expect(output).toContain("Events and calls that wait are not saved");
  expect(readdirSync(platform.dataDir).filter((name) => name.startsWith("backup-"))).toEqual([]);
});

test("restoring over a running platform, or over data, is refused", async () => {
  const over = () => spry("restore", archive, "--data-dir", platform.dataDir);
  expect(await over()).toMatchObject({
    code: 1,
    output: expect.stringContaining("a platform is running"),
  });
  await platform.stop();
  expect(await over()).toMatchObject({
    code: 1,
    output: expect.stringMatching(/is not empty[^]*--force/),
  });
});

describe("a backup that is not whole changes nothing", () => {
  test.each([
    ["cut short", (file: string) => truncateSync(file, Math.floor(statSync(file).size / 2))],
    [
      "damaged",
      (file: string) => {
        const bytes = readFileSync(file);
        const middle = Math.floor(bytes.length / 2);
        bytes[middle] = (bytes[middle] ?? 0) ^ 1;
        writeFileSync(file, bytes);
      },
    ],
    ["something else", (file: string) => writeFileSync(file, "not an archive")],
  ])("%s", async (_how, harm) => {
    const copy = path.join(scratch, "harmed.tar");
    writeFileSync(copy, readFileSync(archive));
    harm(copy);
    const before = readdirSync(scratch);
    const { code, output } = await spry("restore", copy, "--data-dir", path.join(scratch, "other"));
    expect({ code, output }).toMatchObject({
      code: 1,
      output: expect.stringContaining("the backup is damaged or incomplete"),
    });
    expect(readdirSync(scratch)).toEqual(before);
  });
});

test("a platform whose store is damaged or lost says so and does not start", async () => {
  const store = path.join(platform.dataDir, "api/state.db");
  const up = () =>
    spry(
      "up",
      "--data-dir",
      platform.dataDir,
      "--api-port=0",
      "--gateway-port=0",
      "--registry-port=0",
    );
  truncateSync(store, 0);
  expect(await up()).toMatchObject({
    code: 1,
    output: expect.stringMatching(/is damaged: it is empty[^]*spry restore/),
  });
  rmSync(store);
  expect(await up()).toMatchObject({
    code: 1,
    output: expect.stringMatching(/state.db is missing[^]*spry restore/),
  });
});

test("after the restore the Function answers, with its image and without a build", async () => {
  const { code, output } = await spry(
    "restore",
    archive,
    "--force",
    "--data-dir",
    platform.dataDir,
  );
  expect({ code, output }).toMatchObject({
    code: 0,
    output: expect.stringContaining("the previous content is in"),
  });
  await platform.start();
  await platform.callUntil("kept.default", ({ body }) => body === "still here");
  expect(await jobs()).toEqual(jobsBefore);
});
