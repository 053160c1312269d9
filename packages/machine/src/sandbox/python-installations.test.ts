import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { silentLogger } from "@spry/kube";
import { beforeEach, describe, expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { Interpreters } from "./interpreters.ts";
import { findPython, pythonVersions } from "./python-installations.ts";

let home: string;
beforeEach(() => void (home = temporaryDirectory()));

function program(file: string, text = "#!/bin/sh\nexit 127\n"): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

/** The version of this machine's own Python with which the tests of a real one run. */
const version = await newest();

async function newest(): Promise<string | undefined> {
  for (const each of pythonVersions().reverse()) if (await findPython(each)) return each;
  return undefined;
}

test("versions are known from the names of programs, wherever version managers put them", () => {
  program(path.join(home, ".pyenv/versions/3.9.18/bin/python3.9"));
  program(path.join(home, ".asdf/installs/python/3.99.1/bin/python3.99"));
  program(path.join(home, ".local/share/uv/python/cpython-3.98.0-linux/bin/python3.98"));
  program(path.join(home, "bin/python3.97"));
  program(path.join(home, "bin/python3.97-config"));
  const found = pythonVersions({ HOME: home, PATH: `${home}/bin:relative` });
  expect(found).toEqual(expect.arrayContaining(["3.9", "3.97", "3.98", "3.99"]));
  expect(found).not.toContain("3.97-config");
  expect(found.indexOf("3.9")).toBeLessThan(found.indexOf("3.97"));
});

describe.skipIf(!version)("with a Python on this machine", () => {
  const wanted = version ?? "";

  test("one that does not run is passed over", async () => {
    program(path.join(home, `shims/python${wanted}`));
    program(path.join(home, `broken/python${wanted}`));
    const PATH = `${home}/broken:${home}/shims:${process.env["PATH"]}`;
    const found = await findPython(wanted, { ...process.env, PATH });
    expect(found?.executable).not.toContain(home);
  });

  test("one that is called like another version is passed over", async () => {
    const found = await findPython(wanted);
    mkdirSync(path.join(home, "bin"));
    symlinkSync(found?.executable ?? "", path.join(home, "bin/python3.99"));
    expect(await findPython("3.99", { HOME: home, PATH: `${home}/bin` })).toBeUndefined();
  });

  test("a virtual environment stands for the Python that it was made from", async () => {
    const found = await findPython(wanted);
    const bin = path.join(home, "venv/bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(found?.executable ?? "", path.join(bin, `python${wanted}`));
    writeFileSync(
      path.join(home, "venv/pyvenv.cfg"),
      `home = ${path.dirname(found?.executable ?? "")}\n`,
    );
    const again = await findPython(wanted, { ...process.env, PATH: bin });
    expect(again?.prefix).toBe(found?.prefix);
    expect(again?.executable).not.toContain(home);
  });

  test("an interpreter sees no packages of the machine, and takes pip's settings from the platform", async () => {
    const dataDir = path.join(home, "with blanks");
    const pipConfig = path.join(home, "pip.conf");
    writeFileSync(pipConfig, "[global]\nproxy = http://proxy.example\n");
    const interpreters = new Interpreters({ dataDir, pipConfig, log: silentLogger });
    const bin = await interpreters.ensure(`python@${wanted}`, () => {});
    const run = (name: string, ...args: string[]) =>
      execFileSync(name, args, { env: { PATH: `${bin}:/usr/bin:/bin`, HOME: home } }).toString();
    const probe =
      "import sys; print('%d.%d' % sys.version_info[:2], [each for each in sys.path if 'packages' in each])";
    expect(run("python3", "-c", probe).trim()).toBe(`${wanted} []`);
    expect(run("pip", "config", "list")).toContain("proxy.example");
    expect(run("pip", "--version")).toContain(`(python ${wanted})`);
  });
});

test("a version that is not here is refused with those that are", async () => {
  const interpreters = new Interpreters({ dataDir: home, log: silentLogger });
  const failure = interpreters.ensure("python@3.99", () => {});
  await expect(failure).rejects.toThrow(
    /^Python 3\.99 is not on this machine \(it has .*\): install/,
  );
});
