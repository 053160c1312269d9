/**
 * The documents for users, followed to the letter: the npm package is made and installed as they say, on a machine with an empty
 * home, and every block is run, in order.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { blocksOf } from "../support/document-blocks.ts";
import { DocumentRunner } from "../support/document-runner.ts";
import { root } from "../support/platform.ts";

const home = mkdtempSync(path.join(tmpdir(), "spry-documents-"));
const prefix = path.join(home, "prefix");
const node = path.dirname(process.execPath);
let tarball = "";
const python = await findPython("3.12");
/** Of what is installed, in bytes. */
const installedLimit = 60e6;

beforeAll(() => {
  const made = execFileSync(process.execPath, ["tools/package/main.ts", home], {
    cwd: root,
    encoding: "utf8",
  });
  tarball = made.trim();
}, 120_000);
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Follows a document in a home of its own; the package is there, as the document's first block expects it. */
async function follow(document: string): Promise<void> {
  const own = path.join(home, path.basename(document, ".md"));
  mkdirSync(own);
  const runner = await DocumentRunner.create(own, prefix, node);
  copyFileSync(tarball, path.join(runner.work, path.basename(tarball)));
  try {
    for (const block of blocksOf(readFileSync(path.join(root, document), "utf8"))) {
      if (block.isNotRun) continue;
      try {
        await runner.run(block);
      } catch (error) {
        throw new Error(`${document}:${block.line}: ${(error as Error).message}`, { cause: error });
      }
    }
  } finally {
    await runner.end();
  }
}

describe("on a machine with Node.js and npm only", () => {
  test("the quick start", () => follow("docs/quick-start.md"), 600_000);

  test("what npm has installed is small", () => {
    const { stdout } = spawnSync("du", ["-sb", prefix], { encoding: "utf8" });
    expect(Number(stdout.split("\t")[0])).toBeLessThan(installedLimit);
  });

  test.skipIf(!python)("the tutorial", () => follow("docs/tutorial.md"), 900_000);

  test("local development", () => follow("docs/local-development.md"), 600_000);

  test("handlers", () => follow("docs/handlers.md"), 600_000);

  test("environment variables", () => follow("docs/environment.md"), 600_000);

  test("events", () => follow("docs/events.md"), 600_000);

  test("moving from other systems", () => follow("docs/migration.md"), 600_000);
});
