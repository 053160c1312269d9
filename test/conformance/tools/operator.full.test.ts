/** An operator built on controller-runtime, its own tests run by envtest: leader election, cache, webhooks, conversion. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operatorDirectory, operatorTests } from "../../../tools/foreign-tools/operator.ts";
import { type Harness, startHarness } from "../harness.ts";

const program = operatorTests();

describe.skipIf(!existsSync(program))(
  "an operator's own tests (needs: npm run foreign-tools)",
  () => {
    let harness: Harness;
    beforeAll(async () => {
      harness = await startHarness();
    });
    afterAll(() => harness.close());

    test("pass", async () => {
      const { output, code } = await run(harness);
      const told = output.split("\n").filter((line) => !line.startsWith("{"));
      expect(told.filter((line) => line.startsWith("--- "))).toEqual(
        [
          "LeaderHoldsALease",
          "ReconcilesFromCreationToDeletion",
          "CacheIndexesAndWatches",
          "Refusals",
          "ConvertsBetweenVersions",
          "ConflictOfUpdates",
          "ScaleOfACustomResource",
        ].map((name) => expect.stringMatching(`^--- PASS: Test${name} `)),
      );
      expect(output).not.toContain("Server rejected event");
      expect(code).toBe(0);
    });
  },
);

function run({ kubeconfig, directory }: Harness): Promise<{ output: string; code: number | null }> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH, HOME: directory, KUBECONFIG: kubeconfig };
    const child = spawn(program, ["-test.v", "-test.timeout=50s"], { cwd: operatorDirectory, env });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ output, code }));
  });
}
