import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { endProcessesWithHome } from "./left-over.ts";

const start = (home: string) =>
  spawn(process.execPath, ["-e", "console.log(1); setInterval(() => {}, 1000)"], {
    env: { HOME: home, LAST: "1" },
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });

test.skipIf(process.platform !== "linux")(
  "a process that has left its group is found by its home, and others are not",
  async () => {
    const home = mkdtempSync(path.join(tmpdir(), "home-"));
    const [own, other] = [start(home), start(`${home}-of-another`)];
    for (const { stdout } of [own, other])
      await new Promise((resolve) => stdout.once("data", resolve));
    const ended = new Promise((resolve) => own.once("exit", (_code, signal) => resolve(signal)));
    expect(endProcessesWithHome(home)).toBe(1);
    expect(await ended).toBe("SIGKILL");
    expect(other.exitCode).toBeNull();
    other.kill("SIGKILL");
  },
);
