/**
 * Before each file of tests: the temporary folder becomes one of the file's own, for it and the processes that it
 * starts, and is removed after it. What other programs keep in the system's temporary folder cannot disturb a row, and
 * a row that forgets to clean up leaves nothing behind.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "vitest";

const before = process.env["TMPDIR"];
// A short name: sockets' paths are limited to 107 bytes.
const scratch = mkdtempSync(path.join(tmpdir(), "t-"));
// As the system's own: processes of other users write here, too.
chmodSync(scratch, 0o1777);
process.env["TMPDIR"] = scratch;

afterAll(() => {
  if (before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = before;
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});
