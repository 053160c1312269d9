/** `spry init --vscode` where code is already: only what VS Code needs is written. */
import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { inspectPorts } from "../dev/inspect-ports.ts";
import { kymaConfigName } from "../kyma/config-yaml.ts";
import { configName } from "../project/schema.ts";
import { shownPath } from "../project/shown-path.ts";
import { languageOf, type Target, targetsOf } from "../project/targets.ts";
import { UserError } from "../user-error.ts";
import { writeFiles } from "../write-files.ts";
import { kymaEditor, spryEditor } from "./kyma-files.ts";
import { vscodeFiles } from "./vscode-files.ts";

/** The Functions of a directory; undefined where it has none yet. */
export function functionsIn(root: string): Target[] | undefined {
  if (!existsSync(root)) return undefined;
  const targets = targetsOf([root]);
  const hasConfig = [configName, kymaConfigName].some((name) => existsSync(path.join(root, name)));
  if (hasConfig) return targets;
  return targets.some(({ found }) => !(found instanceof UserError)) ? targets : undefined;
}

/** Files that exist stay as they are, unless `force` says otherwise. */
export function writeEditorFiles(root: string, targets: readonly Target[], force = false): void {
  const files = editorFilesOf(root, targets);
  const names = Object.keys(files);
  const kept = force ? [] : names.filter((name) => existsSync(path.join(root, name)));
  const written = names.filter((name) => !kept.includes(name));
  writeFiles(
    root,
    Object.fromEntries(Object.entries(files).filter(([name]) => written.includes(name))),
  );
  const functions = targets.map(({ name }) => name).join(", ");
  if (written.length > 0)
    console.log(`Created for ${functions} in ${shownPath(root)}:\n\n  ${written.join("\n  ")}\n`);
  if (kept.length > 0)
    console.log(`Kept as they are (--force overwrites them):\n\n  ${kept.join("\n  ")}\n`);
  console.log("Next: open the directory in VS Code, and press F5.");
}

function editorFilesOf(root: string, targets: readonly Target[]): Record<string, string> {
  const languages = targets.map(languageOf);
  const ports = inspectPorts(languages);
  const opened = realpathSync(root);
  const functions = targets.map(({ name, directory, base }, index) => ({
    name,
    language: languages[index] ?? "nodejs",
    // The directory of one of several can be the one that is opened.
    directory: base === opened ? path.relative(base, directory).split(path.sep).join("/") : "",
    port: ports[index] ?? 0,
  }));
  const isKyma = existsSync(path.join(root, kymaConfigName));
  return { ...vscodeFiles(functions), ...(isKyma ? kymaEditor() : spryEditor()) };
}
