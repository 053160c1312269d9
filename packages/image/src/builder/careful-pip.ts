import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runInstaller, shownLine } from "./installer.ts";
import { type PipRun, runPip } from "./pip.ts";

/** What a failure's text has in it when a source cannot be asked what it needs without running it. */
export const nothingStated = "states nowhere what it needs";

/** Source distributions that are needed to build source distributions, and so on. */
const maxRounds = 8;

/**
 * pip, except that it does not run the code of a source distribution to learn what that needs: it takes what is stated in
 * the PKG-INFO that belongs into each (packaging specification "Source distribution format"), and in what setuptools
 * leaves beside it.
 */
const pipProgram = `
import email, os, re, shutil, sys
sys.path.insert(0, sys.argv.pop(1))
from pip._internal.cli.main import main
from pip._internal.distributions import sdist
from pip._internal.exceptions import InstallationError

def folders_with_statements(source):
    for folder in (source, os.path.join(source, "src")):
        if os.path.isdir(folder) and not os.path.islink(folder):
            yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".egg-info"))
    yield source

def is_file(path):
    return os.path.isfile(path) and not os.path.islink(path)

def state(self, *args, **more):
    source = self.req.unpacked_source_directory
    for folder in folders_with_statements(source):
        if os.path.islink(folder) or not is_file(os.path.join(folder, "PKG-INFO")):
            continue
        with open(os.path.join(folder, "PKG-INFO"), errors="replace") as file:
            name = email.message_from_file(file)["Name"] or "unnamed"
        # pip takes the name from the directory's: with dashes as setuptools writes them.
        copies = os.path.join(source, "stated", re.sub("[^A-Za-z0-9.]+", "_", name) + ".egg-info")
        os.makedirs(copies, exist_ok=True)
        for name in ("PKG-INFO", "requires.txt"):
            if is_file(os.path.join(folder, name)):
                shutil.copyfile(os.path.join(folder, name), os.path.join(copies, name))
        self.req.metadata_directory = copies
        return
    raise InstallationError(f"{self.req} ${nothingStated}")

sdist.SourceDistribution.prepare_distribution_metadata = state
sys.exit(main(sys.argv[1:]))
`;

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
  const pip = ["python3", "-I", "-c", pipProgram, await directoryOfPip(run)];
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
  throw new Error(`reading source distributions: python3 ended with ${code}: ${shownLine(last)}`);
}

/** What has to be on Python's path for it: a directory, or pip's own wheel. */
async function directoryOfPip(run: PipRun): Promise<string> {
  const { output } = await runInstaller("pip", ["--version"], run);
  const place = /^pip \S+ from (.+) \(python 3\.\d+\)$/m.exec(output)?.[1];
  if (place === undefined) throw new Error(`looking for pip: ${shownLine(output.trim())}`);
  return dirname(place);
}
