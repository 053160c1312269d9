/** What a person types every day on a platform that runs, and what they read when something is in the way. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-everyday-test-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function directory(name: string, files: Record<string, string>): string {
  const place = path.join(home, name);
  mkdirSync(place, { recursive: true });
  for (const [file, content] of Object.entries(files))
    writeFileSync(path.join(place, file), content);
  return place;
}

describe("a build that failed because of something else", () => {
  const dir = directory("pad", {
    "handler.js": `exports.main = () => String(require("isarray")([]));\n`,
    "package.json": `{ "dependencies": { "isarray": "2.0.5" } }`,
  });
  const uids = () =>
    platform.k(
      "get jobs -l serverless.kyma-project.io/function-name=pad -o jsonpath={.items[*].metadata.uid}",
    );

  test("is tried again at once by deploy and apply of what has not changed", async () => {
    await platform.k(
      "create secret generic serverless-package-registry-config --from-literal=.npmrc=registry=http://127.0.0.1:9/\nfetch-retries=0\n",
    );
    const failed = await platform.spry(["deploy", dir, "--timeout", "8"]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("ECONNREFUSED") });
    const before = await uids();
    const { stdout } = await platform.spry(["get", "pad", "-o", "yaml"]);
    const again = await platform.spry(["apply", "--no-wait", "-f", "-"], stdout);
    expect(again).toMatchObject({ stderr: expect.stringContaining("unchanged"), code: 0 });
    await expect.poll(uids).not.toBe(before);
    await platform.k("delete secret serverless-package-registry-config");
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain("unchanged");
    expect(await platform.call("pad.default")).toMatchObject({ status: 200, body: "true" });
  });
});
