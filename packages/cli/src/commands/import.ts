import { existsSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { dump } from "js-yaml";
import { importFile } from "../import/import-file.ts";
import { shownPath } from "../project/project.ts";
import { configName } from "../project/schema.ts";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

/** Writes a `spry.yaml` for each Function of another tool's file, next to its code. Nothing is written if anything is in the way. */
export function importConfig(file: string, options: { force?: boolean }): void {
  const all = importFile(file);
  for (const { directory } of all) {
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
      throw new UserError(`${file} names the directory ${directory}, which does not exist`);
    if (existsSync(path.join(directory, configName)) && !options.force)
      throw new UserError(
        `${shownPath(path.join(directory, configName))} exists: nothing was written`,
        "overwrite it with --force",
      );
  }
  for (const { directory, config, remarks } of all) {
    const target = path.join(directory, configName);
    writeFileSync(target, dump(config, { lineWidth: -1 }));
    console.log(`${shownPath(target)} written`);
    for (const remark of remarks) console.error(`  ${remark}`);
  }
  console.log(`Next: ${spryCommand(`dev ${shownPath(all[0]?.directory ?? ".")}`)}`);
}
