/** Python packages that have to be built from source, from an index with a login: their code runs, and never sees it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { given } from "../testing/build.ts";
import {
  pythonOnThisMachine,
  sourceDistribution,
  startPythonIndex,
} from "../testing/python-index.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { messageOf, UserError } from "./user-error.ts";

const version = pythonOnThisMachine();
const secret = "secret-token";

/** Builds a wheel of one module, with everything in it that its code could find while it ran. */
const backend = (name: string, imports = "") => `
import glob, os, zipfile
${imports}
def build_wheel(directory, settings=None, metadata=None):
    files = glob.glob(os.environ.get("HOME", "/nowhere") + "/**", recursive=True) + [os.environ.get("PIP_CONFIG_FILE", "")]
    seen = str(dict(os.environ)) + "".join(open(file, errors="replace").read() for file in files if os.path.isfile(file))
    with zipfile.ZipFile(directory + "/${name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("${name}.py", "seen = " + repr(seen))
        archive.write("PKG-INFO", "${name}-1.0.dist-info/METADATA")
        archive.writestr("${name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("${name}-1.0.dist-info/RECORD", "")
    return "${name}-1.0-py3-none-any.whl"
`;

// Installers, beside whatever else the machine does.
vi.setConfig({ testTimeout: 120_000 });
const project = (requires: string) =>
  `[build-system]\nrequires = [${requires}]\nbuild-backend = "backend"\nbackend-path = ["."]\n`;
const statement = (name: string, more = "") =>
  `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0\n${more}`;

async function givenPrivate(sources: Record<string, Buffer>, requirements: string) {
  const { pipConfig } = await startPythonIndex({ login: `user:${secret}`, sources });
  return given(
    { "handler.py": "", "requirements.txt": requirements },
    { pipConfig, runtime: `python${version?.replace(".", "")}` },
  );
}

describe.skipIf(!version)("a source distribution from an index with a login", () => {
  test("is built where the login is not, with what it needs for that and later", async () => {
    const { build, client, lines } = await givenPrivate(
      {
        homemade: sourceDistribution("homemade", {
          "pyproject.toml": project('"toolkit"'),
          "backend.py": backend("homemade", "import toolkit"),
          "PKG-INFO": statement("homemade", "Requires-Dist: greeting\n"),
        }),
        toolkit: sourceDistribution("toolkit", {
          "pyproject.toml": project(""),
          "backend.py": backend("toolkit"),
          "PKG-INFO": statement("toolkit"),
        }),
      },
      "homemade==1.0\n",
    );
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    const packages = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
    const seen = readFileSync(join(packages, "homemade.py"), "utf8");
    expect(seen).toContain("index-url");
    // What is unpacked and compiled counts to what an installation may have on disk.
    expect(seen).toContain(`${build.scratch}/home/tmp/pip-`);
    expect(seen + lines.join("\n")).not.toContain(secret);
    expect(existsSync(join(packages, "greeting/__init__.py"))).toBe(true);
    expect(existsSync(join(packages, "toolkit.py"))).toBe(false);
  }, 120_000);

  test("that does not say what it needs is refused, with the way out", async () => {
    const { build } = await givenPrivate(
      {
        silent: sourceDistribution("silent", {
          "pyproject.toml": project(""),
          "backend.py": backend("silent"),
        }),
      },
      "silent\n",
    );
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(
      /note: .*Put a wheel.*silent.* states nowhere what it needs/s,
    );
    expect(messageOf(failure)).not.toContain(secret);
  }, 120_000);
});
