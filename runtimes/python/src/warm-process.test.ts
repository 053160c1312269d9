import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { freePort } from "@spry/test-kit";
import { describe, expect, onTestFinished, test } from "vitest";
import { entry, missingPython } from "./testing.ts";

/** A process that waits for its Function on descriptor 4. */
function startWarmProcess() {
  const child: ChildProcess = spawn("python3", [entry], {
    env: { PATH: process.env["PATH"] ?? "", SPRY_WARM_FD: "4" },
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr?.on("data", (data: Buffer) => (stderr += data.toString()));
  const [, , , ready, handing] = child.stdio as [null, null, null, Readable, Writable];
  return {
    process: child,
    ready,
    write: (line: string) => handing.end(line),
    stderr: () => stderr,
  };
}

function writeHandler(code: string): string {
  const directory = mkdtempSync(path.join(tmpdir(), "spry-python-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(path.join(directory, "handler.py"), code);
  return directory;
}

const forms = ["def", "async def"];

describe.skipIf(missingPython)("a warm process", () => {
  test.each(forms)(
    "becomes the Function that it is handed, %s, with its environment alone",
    async (form) => {
      const directory = writeHandler(
        `import os, sys, time\n${form} main(event, context):\n    return {"env": dict(os.environ), "cwd": os.getcwd(), "path": sys.path[:3], "zone": time.tzname[0]}`,
      );
      const port = await freePort();
      const env = {
        FUNC_PORT: String(port),
        SERVER_HOST: "127.0.0.1",
        TZ: "XYZ-3",
        PYTHONPATH: "/late",
      };
      const warm = startWarmProcess();
      warm.write(`${JSON.stringify({ directory, env: { ...env, SPRY_READY_FD: "3" } })}\n`);
      await once(warm.ready, "data");
      const answer = await fetch(`http://127.0.0.1:${port}/`);
      const seen = (await answer.json()) as {
        env: object;
        cwd: string;
        path: string[];
        zone: string;
      };
      expect(seen).toMatchObject({ env, cwd: directory, zone: "XYZ" });
      // LC_CTYPE is the interpreter's own (PEP 538), as at any start.
      const names = Object.keys(seen.env).filter((name) => name !== "LC_CTYPE");
      expect(names.toSorted()).toEqual(Object.keys(env).toSorted());
      expect(seen.path).toContain("/late");
    },
  );

  test("ends when nobody has a Function for it", async () => {
    const warm = startWarmProcess();
    warm.write("");
    const [code] = (await once(warm.process, "close")) as [number];
    expect({ code, stderr: warm.stderr() }).toEqual({ code: 0, stderr: "" });
  });

  const mistakes: [line: string, says: RegExp][] = [
    ["{", /receiving a Function: not valid JSON/],
    ['{"env":{}}', /its directory is not an absolute path/],
    ['{"directory":"a","env":{}}', /its directory is not an absolute path/],
    ['{"directory":"/"}', /its environment is not an object of strings/],
    ['{"directory":"/","env":{"A":1}}', /its environment is not an object of strings/],
    [
      '{"directory":"/","env":{"PYTHONHASHSEED":"0"}}',
      /PYTHONHASHSEED has an effect only when a process starts/,
    ],
  ];
  test.each(mistakes)("says why %s is none", async (line, says) => {
    const warm = startWarmProcess();
    warm.write(`${line}\n`);
    const [code] = (await once(warm.process, "close")) as [number];
    expect({ code, stderr: warm.stderr() }).toEqual({
      code: 1,
      stderr: expect.stringMatching(says),
    });
  });
});
