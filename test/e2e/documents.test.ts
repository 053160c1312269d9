/** The quick start, followed to the letter: every block is run, in order. The other documents: documents.full.test.ts. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Documents } from "../support/documents.ts";

const documents = new Documents();
/** Of what is installed, in bytes. */
const installedLimit = 60e6;

beforeAll(() => documents.make(), 120_000);
afterAll(() => documents.remove());

describe("on a machine with Node.js and npm only", () => {
  test("the quick start", () => documents.follow("docs/quick-start.md"), 600_000);

  test("what npm has installed is small", () => {
    const { stdout } = spawnSync("du", ["-sb", documents.prefix], { encoding: "utf8" });
    expect(Number(stdout.split("\t")[0])).toBeLessThan(installedLimit);
  });
});
