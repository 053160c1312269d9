/** The Python client as people use it: typed, dynamic, watches, streams, objects from files. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonWithClient } from "../../../tools/foreign-tools/python-client.ts";
import { type Harness, startHarness } from "../harness.ts";

const python = pythonWithClient();
const steps =
  "create,list,watch,patch,conflict,refusal,pages,definition,dynamic,files,log,delete".split(",");

describe.skipIf(!existsSync(python))("the Python client (needs: npm run foreign-tools)", () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
  });
  afterAll(() => harness.close());

  test("does what programs do with it", { timeout: 60_000 }, async () => {
    const program = path.join(import.meta.dirname, "python_client.py");
    const env = { PATH: process.env.PATH, HOME: harness.directory, KUBECONFIG: harness.kubeconfig };
    const output = await new Promise<string>((resolve) => {
      execFile(python, [program], { env, timeout: 50_000 }, (_, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    expect(output.trim().split("\n")).toEqual(steps);
  });
});
