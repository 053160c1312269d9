import { dirname } from "node:path";
import { type InstallerRun, runInstaller, shownLine } from "./installer.ts";

/** What a failure's text has in it when a source cannot be asked what it needs without running it. */
export const nothingStated = "does not state what it needs";

/** The same when there is a source where only wheels are wanted. */
export const sourceRefused = "would have to be built from source";

/**
 * pip, except that it does not run the code of a source distribution to learn what that needs. It takes what is stated in
 * the PKG-INFO that belongs into each (packaging specification "Source distribution format"), and in what setuptools
 * leaves beside it; or refuses the source. `--only-binary` alone keeps no code from running: a requirements file can take it
 * back, and what is named by its URL is not asked.
 */
const pipProgram = `
import email, os, re, shutil, sys
sys.path.insert(0, sys.argv.pop(1))
is_refusing = sys.argv.pop(1) == "refuse"
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
    if is_refusing:
        raise InstallationError(f"{self.req} ${sourceRefused}")
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

/**
 * The arguments that start such a pip: for `install` it has to `refuse` sources, because it would build them; for `download` it
 * may take what they `state`.
 */
export async function pipWithoutCode(
  run: InstallerRun,
  onSource: "refuse" | "state",
): Promise<string[]> {
  return ["python3", "-I", "-c", pipProgram, await directoryOfPip(run), onSource];
}

/** What has to be on Python's path for it: a directory, or pip's own wheel. */
async function directoryOfPip(run: InstallerRun): Promise<string> {
  const { output } = await runInstaller("pip", ["--version"], run);
  const place = /^pip \S+ from (.+) \(python 3\.\d+\)$/m.exec(output)?.[1];
  if (place === undefined) throw new Error(`looking for pip: ${shownLine(output.trim())}`);
  return dirname(place);
}
