import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type InstallerRun, runInstaller, shownLine } from "./installer.ts";
import { nodeHeaders } from "./node-headers.ts";
import { settledByFiles } from "./operator-settings.ts";
import { withoutCredentials } from "./secrets.ts";
import { addUndeclared } from "./undeclared.ts";
import { UserError } from "./user-error.ts";

export interface NpmRun extends InstallerRun {
  /** An `.npmrc` with registries and credentials. */
  userConfig?: string | undefined;
  /** With what only a build needs. */
  withDev?: boolean | undefined;
  /** Folder of the one workspace whose dependencies are wanted. */
  workspace?: string | undefined;
  /** Nothing is declared: there is only what is undeclared. */
  declaresNothing?: boolean;
  /** Names of packages to add where what is declared does not bring them. */
  undeclared?: readonly string[];
  /** Gets a line about each that has been added. */
  report?: ((line: string) => void) | undefined;
}

const shownLines = 12;

/** What npm says when the registry or the way to it is to blame: the next try may do better. */
const temporaryCodes =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|EPIPE|ENETUNREACH|CERT_\w+|SELF_SIGNED_CERT\w*|UNABLE_TO_\w+|E429|E5\d\d|ENOSPC)\b/;

/** What git says when its server wants to know who asks. */
const noGitLogin =
  /Authentication failed for|could not read (?:Username|Password) for|Permission denied \(|Host key verification failed/;
const gitNote =
  "note: builds have no login for the Git repositories of packages. Publish the package to a registry that the .npmrc has a login for, or put what `npm pack` makes of it into the source, as file:NAME.tgz";

/** Of a failure's text: pointers to files that are gone with the build, and advice for other situations. */
const noise = new RegExp(
  [
    "A complete log of this run",
    String.raw`^\s*\S+-debug-\d+\.log$`,
    "^Note that you can also install from a",
    "^tarball, folder, http url, or git (?:folder|url)",
    "^(?:npm )?warn ",
    "^(?:npm )?notice",
    // Of an error as Node.js prints it, what is not its message.
    String.raw`^\s+at `,
    String.raw`^\s*(?:code|errno|syscall|address|port|type|requiredBy): `,
    String.raw`^\}$`,
  ].join("|"),
  "i",
);

const isLocked = (directory: string) =>
  ["package-lock.json", "npm-shrinkwrap.json"].some((name) => existsSync(join(directory, name)));

/**
 * Installs what the package.json in the run's directory wants, by its lock file if there is one, with credentials
 * and therefore without any script. What is left behind holds no credential. Returns whether there are scripts to run.
 * `ownScripts`: the package itself has some, too.
 */
export async function fetchModules(run: NpmRun, ownScripts: readonly string[]): Promise<boolean> {
  const { directory, home, userConfig } = run;
  await install(run, "--ignore-scripts");
  const text = userConfig === undefined ? "" : readFileSync(userConfig, "utf8");
  writeFileSync(join(home, harmlessConfig), withoutCredentials(text));
  const projectConfig = join(directory, ".npmrc");
  if (existsSync(projectConfig))
    writeFileSync(projectConfig, withoutCredentials(readFileSync(projectConfig, "utf8")));
  return ownScripts.length > 0 || hasInstallScripts(directory);
}

/**
 * Runs the install scripts of what `fetchModules` has left in the directory, and the package's own. They are
 * foreign code: nothing here knows a credential.
 */
export async function runInstallScripts(run: NpmRun, ownScripts: readonly string[]): Promise<void> {
  const { directory, home } = run;
  const nodedir = nodeHeaders(home);
  const env = nodedir === undefined ? {} : { npm_config_nodedir: nodedir };
  const userConfig = join(home, harmlessConfig);
  // Added packages have been reported already.
  const harmless = { ...run, userConfig, env, report: undefined };
  const list = installedList(directory);
  const installAgain = () => install(harmless, "--prefer-offline");
  // What comes from a Git repository is made by its scripts before it is installed.
  if (list.includes(fromGit)) return installAgain();
  // Runs the own ones that belong to an installation, too, but not those around `prepare`.
  try {
    await runNpm(["rebuild"], harmless);
  } catch (error) {
    // An installation does without an optional package whose script fails; `npm rebuild` does not.
    if (!list.includes('"optional": true')) throw error;
    return installAgain();
  }
  for (const script of lateScripts.filter((name) => ownScripts.includes(name)))
    await runNpm(["run", script, "--ignore-scripts"], { ...harmless, workspace: undefined });
}

/** What is declared, by the lock file if there is one, and then what is not. */
async function install(run: NpmRun, flag: string): Promise<void> {
  if (!run.declaresNothing) await runNpm([isLocked(run.directory) ? "ci" : "install", flag], run);
  await addUndeclared(run, (specs) =>
    runNpm(["install", ...specs, "--no-save", "--save-prod", flag], run),
  );
}

/** What npm runs of a package itself after an installation in it, in this order, besides `install` and its like. */
const lateScripts = ["prepublish", "preprepare", "prepare", "postprepare"];

/** In the run's home: the settings of the person's file without who they are. */
const harmlessConfig = ".npmrc-without-credentials";

/** By the list that npm leaves of what it has installed; a `binding.gyp` alone is a script too. */
function hasInstallScripts(directory: string): boolean {
  const list = installedList(directory);
  if (list.includes('"hasInstallScript": true')) return true;
  const paths = [...list.matchAll(/^ {4}"(node_modules\/[^"]+)": \{$/gm)].map(([, path]) => path);
  const isFromGit = list.includes(fromGit);
  return paths.some(
    (path) =>
      path &&
      (existsSync(join(directory, path, "binding.gyp")) ||
        (isFromGit && hasPackingScripts(join(directory, path)))),
  );
}

const fromGit = '"resolved": "git';

/** Whether npm builds a repository before it installs it; the list does not say. */
function hasPackingScripts(directory: string): boolean {
  try {
    const text = readFileSync(join(directory, "package.json"), "utf8");
    const { scripts = {} } = JSON.parse(text) as { scripts?: Record<string, unknown> };
    return packingScripts.some((name) => Object.hasOwn(scripts, name));
  } catch {
    return false;
  }
}

/** Of npm's `pacote`, besides those of every installation. */
const packingScripts = ["prepare", "prepack", "build"];

function installedList(directory: string): string {
  const list = join(directory, "node_modules/.package-lock.json");
  return existsSync(list) ? readFileSync(list, "utf8") : "";
}

/** Runs the npm that belongs to the interpreter on `PATH`, where package.json is. Its output is shown only when it fails. */
async function runNpm(command: readonly string[], run: NpmRun): Promise<void> {
  const flags = [
    ...(run.withDev ? ["--include=dev"] : ["--omit=dev"]),
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--no-update-notifier",
    "--loglevel=error",
    // A registry that is away is noticed in seconds; the Job tries again.
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=10000",
  ];
  if (run.workspace !== undefined) flags.push(`--workspace=${run.workspace}`);
  if (run.userConfig !== undefined) flags.push(`--userconfig=${run.userConfig}`);
  const env = {
    ...settledByFiles([run.userConfig, join(run.directory, ".npmrc")], "npm_config_"),
    ...run.env,
    // A cache of the person's own, if one is named: it is what makes a second build at a desk fast.
    npm_config_cache: process.env["npm_config_cache"] ?? `${run.home}/.npm`,
    // An .npmrc that comes with a source or a package may name another program; this goes before it.
    npm_config_git: "git",
  };
  const { code, output } = await runInstaller("npm", [...command, ...flags], { ...run, env });
  if (code === 0) return;
  const title = `npm ${command.filter((word) => !word.startsWith("-")).join(" ")}`;
  const lines = [meaningfulLines(output), ...(noGitLogin.test(output) ? [gitNote] : [])];
  const message = `installing dependencies: ${title} ended with ${code}\n${lines.join("\n")}`;
  if (temporaryCodes.test(output)) throw new Error(message);
  throw new UserError(message);
}

/** Runs the `build` script of the package.json in the run's directory. Throws a `UserError` when it fails. */
export async function runBuildScript(run: InstallerRun): Promise<void> {
  const env = { npm_config_cache: `${run.home}/.npm`, npm_config_update_notifier: "false" };
  const { code, output } = await runInstaller("npm", ["run", "build"], { ...run, env });
  if (code === 0) return;
  throw new UserError(
    `running the build script: npm run build ended with ${code}\n${meaningfulLines(output)}`,
  );
}

/** npm's last lines without its prefix, its manual, its pointers to log files, and without passwords. */
export function meaningfulLines(output: string): string {
  const lines = output
    .split("\n")
    .map((line) =>
      line
        .replace(/^npm (?:error|ERR!) ?/, "")
        .replace(/^(?:404|notarget) */, "")
        .replace(/ \{$/, "")
        .trimEnd(),
    )
    .filter((line) => line !== "" && !noise.test(line))
    .map(shownLine);
  // Wrong usage is explained with the command's title and its whole manual.
  const manual = lines.indexOf("Usage:");
  return lines
    .slice(0, manual < 1 ? lines.length : manual - 1)
    .slice(-shownLines)
    .join("\n");
}
