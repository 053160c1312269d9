/** Bytecode in images says nothing of the machine that compiled it. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bytecodeCommand } from "./python-bytecode.ts";
import { temporaryDirectory } from "./testing/registry.ts";

const run = (program: string, args: readonly string[], env: Record<string, string> = {}) =>
  spawnSync(program, args, { encoding: "utf8", env: { PATH: process.env["PATH"], ...env } });

const versions = ["3.11", "3.12", "3.13", "3.14"].filter(
  (version) => run(`python${version}`, ["-c", ""]).status === 0,
);
const source = `
class Shelf:
    class Box:
        label = frozenset({"north", "south by west"})
    def lift(self, first_handle, second_handle):
        return first_handle.weight + second_handle.weight
`;

/** Digests of the bytecode, by file. */
function compiled(python: string, packages: string): { status: number | null; digests: object } {
  const directory = join(temporaryDirectory(), "packages");
  cpSync(packages, directory, { recursive: true });
  const { args, env } = bytecodeCommand(directory, "/packages");
  const { status } = run(python, args, env);
  const digests = globSync("**/*.pyc", { cwd: directory })
    .sort()
    .map((file) => {
      const bytes = readFileSync(join(directory, file));
      expect(bytes.includes(directory)).toBe(false);
      return [file, createHash("sha256").update(bytes).digest("hex")];
    });
  return { status, digests: Object.fromEntries(digests) };
}

describe.skipIf(versions.length === 0)("bytecode (needs python3.11 or newer)", () => {
  test.each(versions)("of Python %s is the same whatever the interpreter has loaded", (version) => {
    const packages = temporaryDirectory();
    writeFileSync(join(packages, "shelf.py"), source);
    const environment = join(temporaryDirectory(), "venv");
    expect(run(`python${version}`, ["-m", "venv", "--without-pip", environment]).status).toBe(0);
    const site = join(environment, `lib/python${version}/site-packages`);
    expect(existsSync(site)).toBe(true);
    // Its names are in memory while the same names are compiled.
    writeFileSync(join(site, "sitecustomize.py"), source);
    const plain = compiled(`python${version}`, packages);
    expect(plain.status).toBe(0);
    expect(Object.keys(plain.digests)).toEqual([cacheOf("shelf", version)]);
    expect(compiled(join(environment, "bin/python3"), packages)).toEqual(plain);
  });

  test.each(versions.slice(-1))("a file that is no Python %s keeps no other from it", (version) => {
    const packages = temporaryDirectory();
    writeFileSync(join(packages, "shelf.py"), source);
    writeFileSync(join(packages, "old.py"), "print 'of another age'");
    expect(compiled(`python${version}`, packages)).toMatchObject({
      status: 1,
      digests: { [cacheOf("shelf", version)]: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    });
  });
});

const cacheOf = (name: string, version: string) =>
  `__pycache__/${name}.cpython-${version.replace(".", "")}.pyc`;
