import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { defaultRuntime, type Runtime, type Template, templates as ofOne } from "@spry/function";
import { functionsIn, writeEditorFiles } from "../init/existing-code.ts";
import { filesOf } from "../init/files-of.ts";
import { withGitFiles } from "../init/git-files.ts";
import { kymaCodeFiles, kymaInitFiles, spryEditor } from "../init/kyma-files.ts";
import { pairFiles, pairTemplate } from "../init/pair-template.ts";
import { kymaConfigName, kymaFilesOf } from "../kyma/config-yaml.ts";
import { knownVersions } from "../kyma/schema.ts";
import { checkedName } from "../project/checked-name.ts";
import { nameFrom, nameProblem } from "../project/directory-name.ts";
import { listSource } from "../project/files.ts";
import { configName } from "../project/schema.ts";
import { runtimeNamed } from "../project/project.ts";
import { shownPath } from "../project/shown-path.ts";
import { copiesForLinks } from "../project/source-links.ts";
import { shellWord } from "../shell-word.ts";
import { UserError } from "../user-error.ts";
import { explainedCommands, spryCommandHere } from "../shown-command.ts";
import { writeFiles } from "../write-files.ts";

export interface InitOptions {
  runtime?: string;
  template?: string;
  name?: string;
  list?: boolean;
  force?: boolean;
  /** The same as the argument, as in the original. */
  dir?: string;
  namespace?: string;
  runtimeImageOverride?: string;
  /** A Git repository to begin with a copy of. */
  from?: string;
  /** The original's: a Function that is built from a Git repository. */
  url?: string;
  reference?: string;
  baseDir?: string;
  repositoryName?: string;
  /** A `config.yaml` of this version instead of a `spry.yaml`. */
  schemaVersion?: string;
  vscode?: boolean;
  /** A handler and its packages alone, for \`function create\`. */
  isCodeOnly?: boolean;
}

/** Writes a new directory with a Function, and prints what to do next. Nothing is written if anything is in the way. */
export async function init(given: string | undefined, options: InitOptions): Promise<void> {
  if (options.list) return printTemplates();
  checkTogether(options);
  const directory = given ?? options.dir ?? ".";
  // A shell's variable that is not set: the files would go into the current directory.
  if (directory === "") throw new UserError("the directory's name is empty", "name a directory");
  const root = path.resolve(directory);
  const existing = isForEditor(options) ? functionsIn(root) : undefined;
  if (existing) return writeEditorFiles(root, existing, options.force);
  const runtime = runtimeNamed(options.runtime ?? runtimeFor(options.template));
  const found = statSync(root, { throwIfNoEntry: false });
  if (found && !found.isDirectory())
    throw new UserError(`${directory} is a file`, "name a directory");
  const real = found ? realpathSync(root) : root;
  const problem = options.name === undefined ? nameProblem(real) : undefined;
  if (problem) throw new UserError(problem.message, "name the Function with --name NAME");
  const name = checkedName(options.name ?? nameFrom(real));
  const { files, kind } = await contentOf(options, runtime, name);
  const inTheWay = Object.keys(files).filter((file) => existsSync(path.join(root, file)));
  if (inTheWay.length > 0 && !options.force)
    throw new UserError(
      `${shownPath(root)} already has ${inTheWay.join(", ")}: nothing was written`,
      "choose another directory, or overwrite these files with --force",
    );
  writeFiles(root, files);
  console.log(`Created ${name} (${kind}) in ${shownPath(root)}:\n`);
  const names = Object.keys(files);
  const shown = names.length > maxShown ? [...names.slice(0, maxShown), "…"] : names;
  console.log(
    `  ${shown
      .join("  ")
      .replace(/(.{1,74})(?:\s{2}|$)/g, "$1\n  ")
      .trim()}\n`,
  );
  const place = root === process.cwd() ? "" : ` ${shellWord(shownPath(root))}`;
  console.log("Next:\n");
  const config = shellWord(shownPath(path.join(root, kymaConfigName)));
  const here: [string, string] = [
    spryCommandHere(`dev${place}`),
    "run it here; a saved file answers at once",
  ];
  const onPlatform = isKyma(options) ? `apply -f ${config}` : `deploy${place}`;
  const command = options.isCodeOnly ? createCommand(runtime, root) : onPlatform;
  const there: [string, string] = [spryCommandHere(command), "run it on the platform"];
  console.log(explainedCommands(options.url === undefined ? [here, there] : [there]));
}

function createCommand({ name, language }: Runtime, root: string): string {
  const [source, dependencies] = kymaFilesOf(name).map((file) =>
    shellWord(shownPath(path.join(root, file))),
  );
  return `function create ${language} my-function --source ${source} --dependencies ${dependencies}`;
}

const templates = [...ofOne, pairTemplate];
export const templateNames = [...new Set(templates.map(({ name }) => name))];
const maxShown = 30;
const isKyma = ({ url, schemaVersion }: InitOptions): boolean =>
  url !== undefined || schemaVersion !== undefined;

/** Nothing is said of a new Function. */
const isForEditor = ({ vscode, name, runtime, template, from, ...options }: InitOptions): boolean =>
  vscode === true &&
  !isKyma(options) &&
  [name, runtime, template, from].every((each) => each === undefined);

function checkTogether(options: InitOptions): void {
  const { from, url, schemaVersion = "v0", reference, baseDir, template } = options;
  if (from !== undefined && isKyma(options))
    throw new UserError(
      "--from copies a repository, --url and --schema-version write a config.yaml",
      "leave one of them out",
    );
  if (template !== undefined && (from !== undefined || isKyma(options)))
    throw new UserError(
      "--template cannot be combined with --from, --url and --schema-version",
      "leave it out",
    );
  if (options.runtimeImageOverride !== undefined && !isKyma(options))
    throw new UserError(
      "--runtime-image-override is a key of a config.yaml",
      "add --schema-version v1, which writes one",
    );
  if (!knownVersions.includes(schemaVersion))
    throw new UserError(`${schemaVersion} is not a version of config.yaml`, "use v0 or v1");
  if (from === undefined && url === undefined && (reference ?? baseDir) !== undefined)
    throw new UserError(
      "--reference and --base-dir apply only to a Git repository",
      "add --from or --url",
    );
}

interface Content {
  files: Record<string, string | Buffer>;
  /** What it is, in a few words. */
  kind: string;
}

async function contentOf(options: InitOptions, runtime: Runtime, name: string): Promise<Content> {
  const { from, url, reference, baseDir = "/", vscode = false } = options;
  if (from !== undefined) {
    const copied = await withGitFiles({ url: from, reference, baseDir }, readAll);
    const own = copied[configName] === undefined && { [configName]: `name: ${name}\n` };
    return { files: { ...copied, ...own, ...(vscode && spryEditor()) }, kind: `from ${from}` };
  }
  if (options.isCodeOnly)
    return { files: kymaCodeFiles(name, runtime), kind: `code alone, ${runtime.name}` };
  if (isKyma(options)) {
    const { schemaVersion = "v0", namespace, runtimeImageOverride } = options;
    const git = url === undefined ? undefined : { url, reference: reference ?? "main", baseDir };
    const of = { name, runtime, schemaVersion, namespace, runtimeImageOverride, git, vscode };
    return { files: kymaInitFiles(of), kind: `${kymaConfigName}, ${runtime.name}` };
  }
  const template = templateNamed(options.template, runtime.language);
  const own =
    template === pairTemplate ? pairFiles(runtime, name) : filesOf(template, runtime, name);
  const files = { ...own, ...(vscode && spryEditor()) };
  return { files, kind: `${template.name}, ${runtime.name}` };
}

function readAll(directory: string): Record<string, Buffer> {
  const { files } = listSource(directory);
  const all = [...files.filter(({ link }) => !link), ...copiesForLinks(files)];
  return Object.fromEntries(all.map(({ path: name, file }) => [name, readFileSync(file)]));
}

/** `--template fastapi` alone says which language is meant. */
function runtimeFor(template: string | undefined): string {
  const languages = templates.filter(({ name }) => name === template).map((each) => each.language);
  return languages.length > 0 && !languages.includes("nodejs") ? "python312" : defaultRuntime;
}

function templateNamed(name: string | undefined, language: Template["language"]): Template {
  const all = templates.filter((each) => each.language === language);
  const found = name === undefined ? all[0] : all.find((each) => each.name === name);
  if (found) return found;
  const elsewhere = templates.some((each) => each.name === name);
  throw new UserError(
    elsewhere ? `the template ${name} does not exist for this runtime` : `unknown template ${name}`,
    `use one of ${all.map((each) => each.name).join(", ")}; \`spry init --list\` describes them` +
      (language === "nodejs" ? "; for Python add --runtime python312" : ""),
  );
}

function printTemplates(): void {
  for (const [language, title, flag] of [
    ["nodejs", "Node.js", "--runtime nodejs22, nodejs24 (default) or nodejs26"],
    ["python", "Python", "--runtime python312 or python314"],
  ] as const) {
    console.log(`${title} (${flag}):`);
    for (const each of templates.filter((one) => one.language === language))
      console.log(`  --template ${each.name.padEnd(12)} ${each.description}`);
    console.log();
  }
}
