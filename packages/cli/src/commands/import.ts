import { lstatSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { dump } from "js-yaml";
import { asOne, importFile } from "../import/import-file.ts";
import { type Imported } from "../import/imported.ts";
import { isInside } from "../inside.ts";
import { shownPath } from "../project/shown-path.ts";
import { configName } from "../project/schema.ts";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

/**
 * Writes a `spry.yaml` for the Function of another tool's file, next to its code, or for several one with all of them, next to the file.
 * Either everything is written or nothing.
 */
export function importConfig(file: string, { force = false }: { force?: boolean }): void {
  const all = importFile(file);
  for (const { directory } of all) checkDirectory(file, directory);
  const one = all.length > 1 ? asOne(file, all) : undefined;
  if (one) checkNoOther(one.directory, all);
  const written = one ? [one] : all;
  for (const { directory } of written) checkFree(directory, force);
  for (const { directory, config, remarks } of written) {
    const target = path.join(directory, configName);
    // A symbolic link is replaced, not followed: what it names may be any file of the user's.
    if (force) rmSync(target, { force: true });
    writeFileSync(target, dump(config, { lineWidth: -1 }), { flag: "wx" });
    console.log(`${shownPath(target)} written`);
    for (const remark of remarks) console.error(`  ${remark}`);
  }
  console.log(`Next: ${spryCommand(`dev ${shownPath(written[0]?.directory ?? ".")}`)}`);
}

function checkDirectory(file: string, directory: string): void {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(`${file} names the directory ${directory}, which does not exist`);
  if (!isInside(path.dirname(file), directory))
    throw new UserError(
      `${file} names the directory ${directory}, which is outside of its own: nothing was written`,
      "import it from a directory that holds both",
    );
}

function checkFree(directory: string, force: boolean): void {
  const target = path.join(directory, configName);
  if (lstatSync(target, { throwIfNoEntry: false }) && !force)
    throw new UserError(
      `${shownPath(target)} exists: nothing was written`,
      "overwrite it with --force",
    );
}

/** Several Functions have one place for their settings. */
function checkNoOther(root: string, all: readonly Imported[]): void {
  for (const { directory } of all) {
    const other = path.join(directory, configName);
    if (directory !== root && lstatSync(other, { throwIfNoEntry: false }))
      throw new UserError(
        `${shownPath(other)} exists, and one ${configName} is for all Functions: nothing was written`,
        "move it away, and its keys below functions afterwards",
      );
  }
}
