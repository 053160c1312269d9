/** Python packages that have to be built before they can be installed. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { write } from "./build.ts";
import { temporaryDirectory } from "./registry.ts";

/** The archive of a source distribution `<name>-1.0` with these files. */
export function sourceDistribution(name: string, files: Record<string, string>): Buffer {
  const place = temporaryDirectory();
  const folder = `${name}-1.0`;
  write(join(place, folder), files);
  return execFileSync("tar", ["-C", place, "-czf", "-", folder]);
}

/**
 * The files of a source distribution that makes its wheel itself: of one module, with everything in it that its code could
 * find while it ran. `requires` is what it is built with, `imports` what it imports then; `statement` goes on its PKG-INFO.
 */
export function curiousSource(
  name: string,
  { requires = "", imports = "", statement = "" } = {},
): Record<string, string> {
  return {
    "pyproject.toml": `[build-system]\nrequires = [${requires}]\nbuild-backend = "backend"\nbackend-path = ["."]\n`,
    "backend.py": backend(name, imports),
    "PKG-INFO": `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0\n${statement}`,
  };
}

const backend = (name: string, imports: string) => `
import glob, os, zipfile
${imports}
def build_wheel(directory, settings=None, metadata=None):
    files = glob.glob(os.environ.get("HOME", "/nowhere") + "/**", recursive=True) + [os.environ.get("PIP_CONFIG_FILE", "")]
    seen = str(dict(os.environ)) + "".join(open(file, errors="replace").read() for file in files if os.path.isfile(file))
    with zipfile.ZipFile(directory + "/${name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("${name}.py", "seen = " + repr(seen))
        archive.write("PKG-INFO", "${name}-1.0.dist-info/METADATA")
        archive.writestr("${name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("${name}-1.0.dist-info/RECORD", "".join(each + ",,\\n" for each in [*archive.namelist(), "${name}-1.0.dist-info/RECORD"]))
    return "${name}-1.0-py3-none-any.whl"
`;

/** The files of a source distribution that makes the same wheel of one module always. */
export function steadySource(name: string): Record<string, string> {
  const { "PKG-INFO": statement = "", "pyproject.toml": project = "" } = curiousSource(name);
  const lines = backend(name, "").split("\n");
  const steady = lines.map((line) => (/^ {4}seen = /.test(line) ? '    seen = "nothing"' : line));
  return {
    "PKG-INFO": statement,
    "pyproject.toml": project,
    "backend.py": steady.join("\n"),
  };
}
