import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { packageSpec } from "@spry/function";
import { digestOf } from "../digest.ts";
import { type LayerFile } from "../layer.ts";
import { npmComponents } from "./components.ts";
import { readSource, type SourceFile } from "./function-source.ts";
import { type Installation } from "./installer.ts";
import { localArchives, localManifests } from "./local-packages.ts";
import { isDirectoryBelow, placesBelow, readModules } from "./module-tree.ts";
import { type Monorepo, moduleDirectories, placesInImage } from "./monorepo.ts";
import { fetchModules, type NpmRun, runInstallScripts } from "./npm.ts";
import {
  dependencyInput,
  hasDependencies,
  ownInstallScripts,
  readPackageJson,
} from "./package-json.ts";
import { secretsIn } from "./secrets.ts";
import { undeclaredIn } from "./undeclared.ts";

const lockFiles = ["package-lock.json", "npm-shrinkwrap.json"];
/** All that an installer gets to see of a source. */
const installerFiles = ["package.json", ".npmrc", ...lockFiles];
const code = /\.[cm]?[jt]sx?$/;

export interface NodeDependencyOptions {
  /** An `.npmrc` with registries and credentials. */
  npmConfig?: string | undefined;
  /** With the devDependencies. */
  withDev?: boolean;
  monorepo?: Monorepo | undefined;
  /** A change of code alone does not install again: the directory already has what its own scripts have made. */
  codeIsStable?: boolean;
  /** Gets a line about each package that is installed though it is not declared. */
  report?: ((line: string) => void) | undefined;
  /** Gets the lines of npm as they come. */
  onLine?: ((line: string) => void) | undefined;
}

/**
 * What package.json declares, and what the source uses of packages that are added to it, installed by npm to
 * `node_modules` in the Function's directory of the image; undefined when that is nothing.
 */
export function nodeDependencies(
  files: readonly SourceFile[],
  functionDirectory: string,
  { npmConfig, withDev = false, monorepo, codeIsStable, report, onLine }: NodeDependencyOptions,
): Installation | undefined {
  const given = readPackageJson(files);
  const packageJson = given ?? {};
  const local = monorepo ? [] : localManifests(files, packageJson);
  const declaresNothing = !hasDependencies(packageJson, withDev) && local.length === 0;
  const undeclared = undeclaredIn(files);
  if (declaresNothing && undeclared.length === 0) return undefined;
  const prefix = `${functionDirectory}/node_modules`;
  const own = files.filter(
    ({ path }) => installerFiles.includes(path) && (given || path !== "package.json"),
  );
  // Without one npm would look for it in the folders above.
  if (!given) own.push({ path: "package.json", content: Buffer.from("{}\n"), mode: 0o644 });
  const manifests = monorepo ? inputsOf(monorepo, own) : [...own, ...local];
  const archives = localArchives(manifests, monorepo ? filesAround(monorepo, files) : files);
  const inputs = [...manifests, ...archives];
  const configTexts = inputs.filter(({ path }) => posix.basename(path) === ".npmrc");
  const hasOwnScripts =
    ownInstallScripts(packageJson).length > 0 &&
    !ignoresScripts(configTexts.map(({ content }) => content.toString()));
  // What the package's own scripts read can be any of them.
  const read = hasOwnScripts ? (monorepo ? filesAround(monorepo, files) : files) : [];
  const contentsOf = (names: string[]) =>
    inputs
      .filter(({ path }) => names.includes(posix.basename(path)))
      .map(({ content }) => content.toString());
  const configs = contentsOf([".npmrc"]);
  if (npmConfig !== undefined) configs.push(readFileSync(npmConfig, "utf8"));
  const secrets = secretsIn(configs);
  return {
    secrets,
    inputs: [
      sortKeys(dependencyInput(packageJson)),
      contentsOf(lockFiles),
      configs.map(settingLines),
      process.env["npm_config_ignore_scripts"] ?? "",
      prefix,
      withDev,
      ...(monorepo
        ? [monorepo.folder, monorepo.isWorkspace, monorepo.packages, manifestsOf(inputs)]
        : []),
      ...local.map(({ path, content }) => [path, content.toString()]),
      ...archives.map(({ path, content }) => [path, digestOf(content)]),
      ...read
        .filter(({ path }) => !codeIsStable || !code.test(path))
        .map(({ path, content }) => [path, digestOf(content)]),
      ...(undeclared.length > 0 ? [{ undeclared: undeclared.map(packageSpec) }] : []),
    ],
    async fetch(directory) {
      const place = writeInputs([...read, ...inputs], directory, withDev);
      const found = await inEachPackage(fetchModules, place);
      return found.includes(true);
    },
    async runScripts(directory) {
      await inEachPackage(runInstallScripts, placeOf(directory, withDev));
    },
    read(directory) {
      const { installed } = placeOf(directory, withDev);
      const directories = monorepo
        ? moduleDirectories(monorepo, installed, functionDirectory)
        : ["", ...local.map(({ path }) => posix.dirname(path))].map((folder) => ({
            directory: join(installed, folder, "node_modules"),
            prefix: posix.join(functionDirectory, folder, "node_modules"),
          }));
      const inSource = local.length > 0 ? placesBelow([[installed, functionDirectory]]) : undefined;
      const inImage = monorepo ? placesInImage(monorepo, installed, functionDirectory) : inSource;
      const trees = directories
        .filter((each) => isDirectoryBelow(directory, each.directory))
        .map((each) => ({
          ...readModules(each.directory, each.prefix, inImage),
          components: npmComponents(each.directory),
        }));
      const known = new Set(read.map(({ path }) => path));
      const made = hasOwnScripts && !monorepo ? madeFiles(installed, functionDirectory, known) : [];
      return {
        files: [...trees.flatMap((tree) => tree.files), ...made],
        size: trees.reduce((sum, tree) => sum + tree.size, 0),
        components: trees.flatMap((tree) => tree.components),
      };
    },
  };

  /** Npm links folders that are not workspaces, and leaves their dependencies to them. */
  async function inEachPackage<T>(
    act: (run: NpmRun, ownScripts: readonly string[]) => Promise<T>,
    { installed, home }: Place,
  ): Promise<T[]> {
    const results: T[] = [];
    const isLinked = monorepo && !monorepo.isWorkspace;
    for (const folder of isLinked ? [...monorepo.packages, monorepo.folder] : [""]) {
      const manifest = inputs.filter(({ path }) => path === posix.join(folder, "package.json"));
      const here = readPackageJson(manifest.map((file) => ({ ...file, path: "package.json" })));
      const isOwn = !isLinked || folder === monorepo.folder;
      const adds = isOwn && undeclared.length > 0;
      const isEmpty = isLinked ? !hasDependencies(here, withDev) : !monorepo && declaresNothing;
      if (isEmpty && !adds) continue;
      const workspace = isLinked ? undefined : monorepo?.folder;
      const at = { directory: join(installed, folder), home, workspace };
      const more = isOwn ? { undeclared, declaresNothing: isEmpty, report } : {};
      const scripts = ignoresScripts(configs) ? [] : ownInstallScripts(here ?? {});
      const run = { ...at, ...more, userConfig: npmConfig, withDev, secrets, onLine };
      results.push(await act(run, scripts));
    }
    return results;
  }
}

interface Place {
  installed: string;
  home: string;
}

function placeOf(directory: string, withDev: boolean): Place {
  return {
    installed: join(directory, withDev ? "install-dev" : "install"),
    home: join(directory, "home"),
  };
}

function writeInputs(inputs: readonly SourceFile[], directory: string, withDev: boolean): Place {
  const place = placeOf(directory, withDev);
  for (const each of Object.values(place) as string[]) mkdirSync(each, { recursive: true });
  for (const { path, content, mode } of inputs) {
    mkdirSync(dirname(join(place.installed, path)), { recursive: true });
    writeFileSync(join(place.installed, path), content, { mode: mode | 0o600 });
  }
  return place;
}

/** What the package's own scripts have written next to its packages, such as generated code. */
function madeFiles(directory: string, prefix: string, known: ReadonlySet<string>): LayerFile[] {
  const isOther = (path: string) =>
    known.has(path) || installerFiles.includes(path) || path.split("/").includes("node_modules");
  return readSource(directory, { takesAbsoluteLinks: true })
    .filter(({ path }) => !isOther(path))
    .map((file) => ({ ...file, path: `${prefix}/${file.path}` }));
}

/** Npm's own switch for scripts. */
function ignoresScripts(configs: readonly string[]): boolean {
  const line = /^\s*ignore-scripts\s*(?:=\s*"?true"?\s*)?$/m;
  return (
    process.env["npm_config_ignore_scripts"] === "true" || configs.some((text) => line.test(text))
  );
}

/** What npm gets to see, by the paths in the repository. */
function inputsOf({ directory, folder }: Monorepo, own: readonly SourceFile[]): SourceFile[] {
  const others = readSource(directory).filter(
    ({ path }) => installerFiles.includes(posix.basename(path)) && posix.dirname(path) !== folder,
  );
  return [...others, ...own.map((file) => ({ ...file, path: `${folder}/${file.path}` }))];
}

/** All files that there are, in the same way. */
function filesAround({ directory, folder }: Monorepo, own: readonly SourceFile[]): SourceFile[] {
  const others = readSource(directory).filter(({ path }) => !path.startsWith(`${folder}/`));
  return [...others, ...own.map((file) => ({ ...file, path: `${folder}/${file.path}` }))];
}

function manifestsOf(inputs: readonly SourceFile[]): unknown[] {
  return inputs
    .filter(({ path }) => posix.basename(path) === "package.json")
    .map((file) => {
      const packageJson = readPackageJson([{ ...file, path: "package.json" }]) ?? {};
      const { name, version, bin } = packageJson;
      return [file.path, { ...dependencyInput(packageJson), name, version, bin }];
    });
}

/** What an `.npmrc` says besides who we are: credentials are not part of what comes from a registry. */
function settingLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/\s/g, "").replace(/(:\/\/)[^/@]+@/, "$1"))
    .filter((line) => /^[^#;=]+=/.test(line) && !credentialSetting.test(line))
    .sort();
}

const credentialSetting =
  /^(?:\/\/[^=]*:)?(?:_\w+|username|email|otp|ca(?:\[\])?|cafile|cert|certfile|key|keyfile)=/i;

function sortKeys(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, child]) => [key, sortKeys(child)]));
}
