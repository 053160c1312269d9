import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { openLogin } from "./open-browser.ts";

const login = "http://127.0.0.1:8081/#code=only-for-the-owner";

/** A desktop whose `xdg-open` writes down its arguments. */
function desktop(exitCode = 0): { seen: string } {
  const directory = mkdtempSync(path.join(tmpdir(), "spry-desktop-"));
  const seen = path.join(directory, "seen");
  for (const name of ["xdg-open", "open"]) {
    const program = path.join(directory, name);
    const script = `#!/bin/sh\nprintf %s "$*" > "${seen}.part" && mv "${seen}.part" "${seen}"\nexit ${exitCode}\n`;
    writeFileSync(program, script);
    chmodSync(program, 0o755);
  }
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"]}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(directory, { recursive: true });
  });
  return { seen };
}

async function fileOf({ seen }: { seen: string }): Promise<string> {
  await expect.poll(() => existsSync(seen)).toBe(true);
  return fileURLToPath(readFileSync(seen, "utf8"));
}

test("a login's code is in no command line: the browser reads it from a file of the user's alone", async () => {
  const at = desktop();
  openLogin(login, () => {}, { keptSeconds: 60 });
  const file = await fileOf(at);
  onTestFinished(() => rmSync(path.dirname(file), { recursive: true }));
  expect(readFileSync(at.seen, "utf8")).not.toContain("only-for-the-owner");
  expect(readFileSync(file, "utf8")).toContain(login);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
});

test("the file does not stay", async () => {
  const at = desktop();
  openLogin(login, () => {}, { keptSeconds: 0 });
  const file = await fileOf(at);
  await expect.poll(() => existsSync(path.dirname(file))).toBe(false);
});

test("a browser that cannot be started is reported", async () => {
  desktop(3);
  await new Promise<void>((resolve) => openLogin(login, resolve, { keptSeconds: 0 }));
});
