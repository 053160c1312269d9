/** A machine without the Python that a runtime needs, and without Go, which would fetch it: each command says so at once. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform, root, run } from "../support/platform.ts";

const dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const isHere = (name: string) => dirs.some((dir) => existsSync(path.join(dir, name)));

describe.skipIf(isHere("python3.14") || isHere("go"))("without Python 3.14 and Go", () => {
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-missing-"));
  const home = { HOME: scratch, XDG_CACHE_HOME: path.join(scratch, "cache"), PYENV_ROOT: scratch };
  const env = { ...home, PATH: [path.dirname(process.execPath), ...dirs].join(":") };
  const platform = new Platform({ env });
  const project = path.join(scratch, "py");
  // A command that waits is ended by the test's own limit; those that fail at once have not waited for another attempt.
  const spry = (...args: string[]) =>
    run("env", [
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      process.execPath,
      path.join(root, "packages/cli/bin/spry.mjs"),
      "--kubeconfig",
      platform.kubeconfig,
      ...args,
    ]);
  const lack =
    /Python 3\.14 is not on this machine \([^)]*Go, which would download it, is not installed either\): install it as python3\.14/;

  beforeAll(async () => {
    mkdirSync(project);
    writeFileSync(path.join(project, "handler.py"), "def main():\n    return 'hi'\n");
    writeFileSync(path.join(project, "test_handler.py"), "def test_nothing():\n    pass\n");
    writeFileSync(path.join(project, "spry.yaml"), "name: py\nruntime: python314\n");
    const inline = functionManifest("inline", "def main():\n    return 'hi'\n", {
      runtime: "python314",
    });
    writeFileSync(path.join(scratch, "inline.yaml"), inline);
    await platform.start();
  });
  afterAll(async () => {
    await platform.remove();
    rmSync(scratch, { recursive: true, force: true });
  });

  test.each([
    ["apply", ["apply", "-f", path.join(scratch, "inline.yaml")]],
    ["deploy", ["deploy", project]],
    ["dev", ["dev", project, "--port", "0"]],
    ["test", ["test", project]],
  ])("spry %s names it at its first attempt, and ends", async (_name, args) => {
    const { code, stderr, stdout } = await spry(...args);
    expect({ code, text: stdout + stderr }).toEqual({ code: 1, text: expect.stringMatching(lack) });
    expect((stdout + stderr).match(/is not on this machine/g)).toHaveLength(1);
  });
});
