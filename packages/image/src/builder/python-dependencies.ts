import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { pythonComponents } from "./components.ts";
import { type SourceFile } from "./function-source.ts";
import { type Installation, runInstaller, shownLine } from "./installer.ts";
import { isDirectoryBelow, readModules } from "./module-tree.ts";
import { downloadWheels, installRequirements, type PipRun } from "./pip.ts";
import { secretsIn } from "./secrets.ts";
import { UserError } from "./user-error.ts";

const requirementsFile = "requirements.txt";
const limits = { requirementFiles: 100 };

/** `3.12` of `python312`; undefined for runtimes of other languages. */
export function pythonVersion(runtime: string): string | undefined {
  const minor = /^python3(\d{1,2})$/.exec(runtime)?.[1];
  return minor === undefined ? undefined : `3.${minor}`;
}

/**
 * What requirements.txt asks for, installed by pip to `lib.python3.X/site-packages` in the Function's
 * directory of the image, where the runtime looks first; undefined when it asks for nothing.
 * `pipConfig` is a `pip.conf` with indexes and credentials.
 */
export function pythonDependencies(
  files: readonly SourceFile[],
  version: string,
  functionDirectory: string,
  pipConfig: string | undefined,
): Installation | undefined {
  const requirements = requirementFiles(files);
  if (!requirements.some(({ content }) => meaningful(content.toString()).length > 0))
    return undefined;
  const prefix = `${functionDirectory}/lib.python${version}/site-packages`;
  const texts = requirements.map(({ path, content }) => [path, meaningful(content.toString())]);
  const config = pipConfig === undefined ? "" : readFileSync(pipConfig, "utf8");
  const indexes = indexLines(config);
  const secrets = secretsIn([config, ...requirements.map(({ content }) => content.toString())]);
  return {
    secrets,
    inputs: [texts, indexes, prefix],
    async fetch(directory) {
      writeInputs(requirements, directory);
      const { home } = placesIn(directory);
      const harmless = join(home, harmlessConfig);
      if (pipConfig !== undefined) writeFileSync(harmless, withoutLogins(config));
      // Building from source runs foreign code, which pip does at once: with nothing to keep from it, it may.
      if (secrets.length === 0) return true;
      const options = { config: pipConfig, secrets };
      try {
        await install(directory, { ...options, onlyWheels: true });
        return false;
      } catch (error) {
        const isMissing = error instanceof UserError && error.message.includes(nothingFound);
        if (!isMissing) throw error;
        writeFileSync(join(home, firstFailure), error.message.split("\n").slice(1).join("\n"));
      }
      await fetchWheels(requirements, directory, options);
      takeFromWheels(requirements, directory);
      return true;
    },
    async runScripts(directory) {
      const { home, wheels } = placesIn(directory);
      const harmless = join(home, harmlessConfig);
      await install(directory, {
        config: existsSync(harmless) ? harmless : undefined,
        secrets,
        ...(existsSync(wheels) && { note: noteOf(home) }),
      });
    },
    read(directory) {
      const { target } = placesIn(directory);
      if (!isDirectoryBelow(directory, target)) throw new Error(`there is no ${target}`);
      return { ...readModules(target, prefix), components: pythonComponents(target) };
    },
  };

  async function install(
    directory: string,
    options: Omit<PipRun, "directory" | "home" | "target">,
  ): Promise<void> {
    const { input, home, target } = placesIn(directory);
    await installRequirements({ ...options, directory: input, home, target });
    removeScripts(target);
    await compile(target, `/${prefix}`, home);
  }
}

/** In the run's home: a `pip.conf` without who we are. */
const harmlessConfig = "pip.conf-without-credentials";

const withoutLogins = (text: string) => text.replace(/(:\/\/)[^/@\s]+@/g, "$1");

/** Of pip: there is none, or none that fits, or with wheels only none that is a wheel. */
const nothingFound = "No matching distribution found";

/** In the run's home: what pip said when it had the login, and took wheels only. */
const firstFailure = "pip-with-login.txt";

const noteOf = (home: string) =>
  [
    "note: what is built from source is not taken from an index with a login, which its code could read; put a wheel there. With the login, and wheels only, pip said:",
    readFileSync(join(home, firstFailure), "utf8"),
  ].join("\n");

function placesIn(directory: string) {
  return {
    input: join(directory, "install"),
    home: join(directory, "home"),
    target: join(directory, "site-packages"),
    /** Of indexes with a login; only there where something else has to be built from source. */
    wheels: join(directory, "wheels"),
  };
}

function writeInputs(requirements: readonly SourceFile[], directory: string): void {
  const { wheels: _, ...places } = placesIn(directory);
  for (const each of Object.values(places)) mkdirSync(each, { recursive: true });
  for (const { path, content } of requirements) {
    mkdirSync(dirname(join(places.input, path)), { recursive: true });
    writeFileSync(join(places.input, path), content);
  }
}

/** requirements.txt, and the files that it includes (`-r`, `-c`), each once. */
function requirementFiles(files: readonly SourceFile[]): SourceFile[] {
  const found: SourceFile[] = [];
  const add = (path: string) => {
    const file = files.find((each) => each.path === path);
    if (!file || found.includes(file)) return;
    if (found.length >= limits.requirementFiles)
      throw new UserError(`${requirementsFile}: more than ${limits.requirementFiles} files`);
    found.push(file);
    for (const line of meaningful(file.content.toString())) {
      const included = /^(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)$/.exec(line)?.[1];
      if (included) add(posix.join(posix.dirname(path), included));
    }
  };
  add(requirementsFile);
  return found;
}

/** Lines without blanks around them, comments and empty ones. */
function meaningful(text: string): string[] {
  return text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** Which indexes a `pip.conf` names: who may read them is not part of what comes from them. */
function indexLines(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim().replace(/(:\/\/)[^/@\s]+@/g, "$1"))
    .filter((line) => /^(?:\[|(?:extra-)?index-url|find-links|no-index|https?:)/.test(line));
}

/** One by one, since one without a wheel would keep all the others away. */
async function fetchWheels(
  requirements: readonly SourceFile[],
  directory: string,
  options: Pick<PipRun, "config" | "secrets">,
): Promise<void> {
  const { input, home, wheels } = placesIn(directory);
  mkdirSync(wheels, { recursive: true });
  const isOption = (line: string) => line.startsWith("-");
  for (const { path, content } of requirements) {
    const folder = join(input, dirname(path));
    const lines = meaningful(content.toString());
    const settings = lines.filter((line) => isOption(line) && !/^(?:-r|--requirement)/.test(line));
    for (const line of lines.filter((each) => !isOption(each))) {
      const file = join(folder, "one-requirement.txt");
      writeFileSync(file, [...settings, line, ""].join("\n"));
      await downloadWheels({ ...options, directory: input, home, target: wheels }, file);
      rmSync(file);
    }
  }
}

/**
 * Adds the wheels to where pip looks: by a line, as an argument would stand for what a `pip.conf` says. The
 * requirements may name indexes too, and logins.
 */
function takeFromWheels(requirements: readonly SourceFile[], directory: string): void {
  const { input, wheels } = placesIn(directory);
  for (const { path, content } of requirements) {
    const text = withoutLogins(content.toString());
    const more = path === requirementsFile ? `--find-links "${wheels}"\n` : "";
    writeFileSync(join(input, path), more + text);
  }
}

/**
 * Commands are for a shell that no Function has, and begin with the path of the interpreter that
 * built them, which is nowhere else and never the same. Records of what was installed name them.
 */
function removeScripts(target: string): void {
  rmSync(join(target, "bin"), { recursive: true, force: true });
  for (const name of readdirSync(target)) {
    if (!name.endsWith(".dist-info")) continue;
    // Left by pip for itself: an absolute path, and when it was asked for.
    for (const own of ["direct_url.json", "REQUESTED"])
      rmSync(join(target, name, own), { force: true });
    rewriteRecord(join(target, name, "RECORD"));
  }
}

function rewriteRecord(file: string): void {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return;
  }
  const gone = /^(?:\.\.\/)+bin\/|\/(?:direct_url\.json|REQUESTED),/;
  const lines = text.split("\n").filter((line) => !gone.test(line));
  writeFileSync(file, lines.join("\n"));
}

/**
 * Compiles to bytecode that is taken as it is: the image's files never change. In one process and
 * with fixed hashes, so that the same files give the same bytes. A file that is no Python of this
 * version stays as it is; packages carry such.
 */
async function compile(target: string, imagePath: string, home: string): Promise<void> {
  const args = [
    "-s",
    "-P",
    "-m",
    "compileall",
    "-qq",
    "-f",
    "--invalidation-mode",
    "unchecked-hash",
  ];
  const paths = ["-s", target, "-p", imagePath, target];
  const env = { PYTHONHASHSEED: "0" };
  const run = { directory: target, home, env };
  const { code, output } = await runInstaller("python3", [...args, ...paths], run);
  if (typeof code === "string" || code > 1)
    throw new Error(
      `compiling dependencies: python3 ended with ${code}: ${shownLine(output.trim())}`,
    );
}
