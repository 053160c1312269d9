import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bytecodeCommand } from "../python-bytecode.ts";
import { type BuildOptions } from "./build-options.ts";
import { sourceRefused } from "./careful-pip.ts";
import { pythonComponents } from "./components.ts";
import { type SourceFile } from "./function-source.ts";
import { type Installation, runInstaller, shownLine } from "./installer.ts";
import { isDirectoryBelow, readModules } from "./module-tree.ts";
import { installRequirements, type PipRun } from "./pip.ts";
import { fetchToBuild, noteOf, placesIn } from "./python-downloads.ts";
import { meaningfulLines, requirementFiles } from "./requirements-files.ts";
import { secretsIn, withoutLogins } from "./secrets.ts";
import { removeTraces } from "./site-packages.ts";
import { UserError } from "./user-error.ts";
import { findUv, installWithUv } from "./uv/install.ts";
import { NotForUv } from "./uv/not-for-uv.ts";

/** `3.12` of `python312`; undefined for runtimes of other languages. */
export function pythonVersion(runtime: string): string | undefined {
  const minor = /^python3(\d{1,2})$/.exec(runtime)?.[1];
  return minor === undefined ? undefined : `3.${minor}`;
}

/**
 * What requirements.txt asks for, installed by uv or pip to `lib.python3.X/site-packages` in the Function's
 * directory of the image, where the runtime looks first; undefined when it asks for nothing.
 * `pipConfig` is a `pip.conf` with indexes and credentials; `report` gets a line about who installs.
 */
export function pythonDependencies(
  files: readonly SourceFile[],
  version: string,
  functionDirectory: string,
  { pipConfig, report = () => {} }: Pick<BuildOptions, "pipConfig" | "report">,
): Installation | undefined {
  const requirements = requirementFiles(files);
  if (!requirements.some(({ content }) => meaningfulLines(content.toString()).length > 0))
    return undefined;
  const prefix = `${functionDirectory}/lib.python${version}/site-packages`;
  const texts = requirements.map(({ path, content }) => [
    path,
    meaningfulLines(content.toString()),
  ]);
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
        if (!(error instanceof UserError && isForSources.test(error.message))) throw error;
      }
      await fetchToBuild(requirements, directory, options);
      return true;
    },
    async runScripts(directory) {
      const { home } = placesIn(directory);
      const harmless = join(home, harmlessConfig);
      await install(directory, {
        config: existsSync(harmless) ? harmless : undefined,
        secrets,
        note: noteOf(home),
      });
    },
    read(directory) {
      const { target } = placesIn(directory);
      if (!isDirectoryBelow(directory, target)) throw new Error(`${target} does not exist`);
      return { ...readModules(target, prefix), components: pythonComponents(target) };
    },
  };

  async function install(
    directory: string,
    options: Omit<PipRun, "directory" | "home" | "target">,
  ): Promise<void> {
    const { input, home, target } = placesIn(directory);
    const run = { ...options, directory: input, home, target, onLine: report };
    if (!(await isInstalledWithUv(directory, run))) await installRequirements(run);
    removeTraces(target);
    await compile(target, `/${prefix}`, home);
  }

  async function isInstalledWithUv(directory: string, run: PipRun): Promise<boolean> {
    const uv = findUv();
    if (uv === undefined) return false;
    try {
      if (existsSync(placesIn(directory).wheels))
        throw new NotForUv("some packages are built from what was fetched with a login");
      await installWithUv(uv, run, requirements);
      report("installed with uv");
      return true;
    } catch (error) {
      if (!(error instanceof NotForUv)) throw error;
      report(`installing with pip, not with uv: ${error.message}`);
      return false;
    }
  }
}

/** In the run's home: a `pip.conf` without who we are. */
const harmlessConfig = "pip.conf-without-credentials";

/** Of pip: there is no package, or none that fits, or with wheels only none that is a wheel. */
const isForSources = new RegExp(`No matching distribution found|${sourceRefused}`);

function writeInputs(requirements: readonly SourceFile[], directory: string): void {
  const { wheels: _, ...places } = placesIn(directory);
  for (const each of Object.values(places)) mkdirSync(each, { recursive: true });
  for (const { path, content } of requirements) {
    mkdirSync(dirname(join(places.input, path)), { recursive: true });
    writeFileSync(join(places.input, path), content);
  }
}

/** Which indexes a `pip.conf` names: who may read them is not part of what comes from them. */
function indexLines(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim().replace(/(:\/\/)[^/@\s]+@/g, "$1"))
    .filter((line) => /^(?:\[|(?:extra-)?index-url|find-links|no-index|https?:)/.test(line));
}

/** Packages contain files that are not Python of this version: they stay as they are. */
async function compile(target: string, imagePath: string, home: string): Promise<void> {
  const { args, env } = bytecodeCommand(target, imagePath);
  const { code, output } = await runInstaller("python3", args, { directory: target, home, env });
  if (typeof code === "string" || code > 1)
    throw new Error(
      `compiling dependencies: python3 failed with exit code ${code}: ${shownLine(output.trim())}`,
    );
}
