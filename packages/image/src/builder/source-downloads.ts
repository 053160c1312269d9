import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipWithoutCode } from "./careful-pip.ts";
import { runInstaller, shownLine } from "./installer.ts";
import { type PipRun, runPip } from "./pip.ts";

/** Source distributions that are needed to build source distributions, and so on. */
const maxRounds = 8;

/** Prints, by the names of the source distributions in a directory, what they are built with (PEP 518). */
const buildRequirementsProgram = `
import json, os, sys, tarfile, tomllib, zipfile
limit = 1 << 20

def is_project(name):
    return name.count("/") == 1 and name.endswith("/pyproject.toml")

def project_in(path):
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if is_project(name):
                    with archive.open(name) as file:
                        return file.read(limit)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                if is_project(member.name) and member.isfile():
                    return archive.extractfile(member).read(limit)
    return b""

found = {}
for name in sorted(os.listdir(sys.argv[1])):
    if not name.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")):
        continue
    try:
        requires = tomllib.loads(project_in(os.path.join(sys.argv[1], name)).decode())["build-system"]["requires"]
        found[name] = [" ".join(one.split()) for one in requires]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
        found[name] = ["setuptools>=40.8.0", "wheel"]
print(json.dumps(found))
`;

/**
 * Downloads what the requirements.txt in the run's directory asks for into the run's target: wheels, and where there is none
 * source distributions with all that they are built with. Runs none of it. `settings` are lines of that
 * requirements.txt that say where packages are. Throws a `UserError` with `nothingStated` in it where that is not
 * possible.
 */
export async function downloadWithSources(run: PipRun, settings: readonly string[]): Promise<void> {
  const pip = await pipWithoutCode(run, "state");
  const download = (requirements: string) =>
    runPip("download", run, [`--dest=${run.target}`, `--requirement=${requirements}`], pip);
  await download("requirements.txt");
  const asked = new Set<string>();
  for (let round = 0; round < maxRounds; round++) {
    const lists = await buildRequirements(run);
    const wanted = Object.values(lists).map((list) => list.join("\n"));
    const fresh = [...new Set(wanted)].filter((text) => text !== "" && !asked.has(text));
    if (fresh.length === 0) return;
    for (const text of fresh) {
      asked.add(text);
      const file = join(run.directory, "build-requirements.txt");
      writeFileSync(file, [...settings, text, ""].join("\n"));
      await download(file);
      // The settings may hold a login.
      rmSync(file);
    }
  }
}

async function buildRequirements(run: PipRun): Promise<Record<string, string[]>> {
  const args = ["-I", "-c", buildRequirementsProgram, run.target];
  const { code, output } = await runInstaller("python3", args, run);
  const last = output.trim().split("\n").at(-1) ?? "";
  if (code === 0) return JSON.parse(last) as Record<string, string[]>;
  throw new Error(
    `reading source distributions: python3 failed with exit code ${code}: ${shownLine(last)}`,
  );
}
