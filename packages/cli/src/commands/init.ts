import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defaultRuntime, type Template, templates } from "@spry/function";
import { filesOf } from "../init/files-of.ts";
import { nameFrom, runtimeNamed, shownPath } from "../project/project.ts";
import { shellWord } from "../shell-word.ts";
import { UserError } from "../user-error.ts";
import { spryCommand } from "../shown-command.ts";

export interface InitOptions {
  runtime?: string;
  template?: string;
  name?: string;
  list?: boolean;
  force?: boolean;
}

/** Writes a new directory with a Function, and prints what to do next. Nothing is written if anything is in the way. */
export function init(directory: string, options: InitOptions): void {
  if (options.list) return printTemplates();
  const runtime = runtimeNamed(options.runtime ?? runtimeFor(options.template));
  const template = templateNamed(options.template, runtime.language);
  const root = path.resolve(directory);
  const found = statSync(root, { throwIfNoEntry: false });
  if (found && !found.isDirectory())
    throw new UserError(`${directory} is a file`, "name a directory");
  const name = checkedName(options.name ?? nameFrom(found ? realpathSync(root) : root));
  const files = filesOf(template, runtime, name);
  const inTheWay = Object.keys(files).filter((file) => existsSync(path.join(root, file)));
  if (inTheWay.length > 0 && !options.force)
    throw new UserError(
      `${shownPath(root)} already has ${inTheWay.join(", ")}: nothing was written`,
      "choose another directory, or overwrite these files with --force",
    );
  for (const [file, content] of Object.entries(files)) {
    const target = path.join(root, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
  console.log(`Created ${name} (${template.name}, ${runtime.name}) in ${shownPath(root)}:\n`);
  console.log(
    `  ${Object.keys(files)
      .join("  ")
      .replace(/(.{1,74})(?:\s{2}|$)/g, "$1\n  ")
      .trim()}\n`,
  );
  const place = root === process.cwd() ? "" : ` ${shellWord(shownPath(root))}`;
  console.log("Next:\n");
  console.log(explained(spryCommand(`dev${place}`), "run it here; a saved file answers at once"));
  console.log(explained(spryCommand(`deploy${place}`), "run it on the platform"));
}

/** A command with what it does, where a terminal of 80 columns has room for that. */
function explained(command: string, comment: string): string {
  const line = `  ${command.padEnd(30)}  # ${comment}`;
  return line.length <= 80 ? line : `  ${command}`;
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
    `use one of ${all.map((each) => each.name).join(", ")}; \`spry init --list\` describes them`,
  );
}

function checkedName(name: string): string {
  if (name.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name;
  throw new UserError(
    `${name} is not a valid name of a Function`,
    "use at most 63 lower-case letters, digits and hyphens, with a letter first",
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
