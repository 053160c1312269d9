import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { npmComponents } from "./components.ts";
import { type SourceFile } from "./function-source.ts";
import { type Installation } from "./installer.ts";
import { readModules } from "./module-tree.ts";
import { installModules, type NpmRun } from "./npm.ts";
import {
  dependencyInput,
  hasDependencies,
  hasInstallScripts,
  readPackageJson,
} from "./package-json.ts";
import { secretsIn } from "./secrets.ts";

const lockFiles = ["package-lock.json", "npm-shrinkwrap.json"];
/** All that an installer gets to see of a source. */
const installerFiles = ["package.json", ".npmrc", ...lockFiles];

/**
 * What package.json declares, installed by npm to `node_modules` in the Function's directory of the
 * image; undefined when it declares nothing. `npmConfig` is an `.npmrc` with registries and
 * credentials. `withDev` adds the devDependencies.
 */
export function nodeDependencies(
  files: readonly SourceFile[],
  functionDirectory: string,
  { npmConfig, withDev = false }: { npmConfig?: string | undefined; withDev?: boolean },
): Installation | undefined {
  const packageJson = readPackageJson(files);
  if (!packageJson || !hasDependencies(packageJson, withDev)) return undefined;
  const prefix = `${functionDirectory}/node_modules`;
  const contentsOf = (names: string[]) =>
    files.filter(({ path }) => names.includes(path)).map(({ content }) => content.toString());
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
    ],
    async run(scratch) {
      const modules = join(
        await install(files, scratch, { userConfig: npmConfig, withDev, secrets }),
        "node_modules",
      );
      if (!existsSync(modules)) return { files: [], size: 0, components: [] };
      return { ...readModules(modules, prefix), components: npmComponents(modules) };
    },
  };
}

async function install(
  files: readonly SourceFile[],
  scratch: string,
  options: Pick<NpmRun, "userConfig" | "withDev" | "secrets">,
): Promise<string> {
  const directory = join(scratch, options.withDev ? "install-dev" : "install");
  const home = join(scratch, "home");
  mkdirSync(directory, { recursive: true });
  mkdirSync(home, { recursive: true });
  const inputs = files.filter(({ path }) => installerFiles.includes(path));
  for (const { path, content } of inputs) writeFileSync(join(directory, path), content);
  const ownScripts = hasInstallScripts(readPackageJson(files) ?? {});
  await installModules({ ...options, directory, home }, ownScripts);
  return directory;
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
