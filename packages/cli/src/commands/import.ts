import { lstatSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { dump } from "js-yaml";
import { importFile } from "../import/import-file.ts";
import { isInside } from "../inside.ts";
import { shownPath } from "../project/shown-path.ts";
import { configName } from "../project/schema.ts";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

/** Writes a `spry.yaml` for each Function of another tool's file, next to its code. Either all of them are written or none. */
export function importConfig(file: string, options: { force?: boolean }): void {
  const all = importFile(file);
  for (const { directory } of all) {
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
      throw new UserError(`${file} names the directory ${directory}, which does not exist`);
    if (!isInside(path.dirname(file), directory))
      throw new UserError(
        `${file} names the directory ${directory}, which is outside of its own: nothing was written`,
        "import it from a directory that holds both",
      );
    const present = lstatSync(path.join(directory, configName), { throwIfNoEntry: false });
    if (present && !options.force)
      throw new UserError(
        `${shownPath(path.join(directory, configName))} exists: nothing was written`,
        "overwrite it with --force",
      );
  }
  for (const { directory, config, remarks } of all) {
    const target = path.join(directory, configName);
    // A symbolic link is replaced, not followed: what it names may be any file of the user's.
    if (options.force) rmSync(target, { force: true });
    writeFileSync(target, dump(config, { lineWidth: -1 }), { flag: "wx" });
    console.log(`${shownPath(target)} written`);
    for (const remark of remarks) console.error(`  ${remark}`);
  }
  console.log(`Next: ${spryCommand(`dev ${shownPath(all[0]?.directory ?? ".")}`)}`);
}
