import { existsSync } from "node:fs";
import { type GlobalOptions } from "../connection.ts";
import { checkMachine } from "../platform/verify/machine.ts";
import path from "node:path";
import { isRunning, openDataDir } from "../platform/data-dir.ts";
import { type Finding } from "../platform/verify/finding.ts";
import { verify } from "../platform/verify/verify.ts";
import { UserError } from "../user-error.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { spryCommand } from "../shown-command.ts";

export interface DoctorOptions extends GlobalOptions {
  dataDir: string;
}

/**
 * Checks this machine, and a data directory that no platform uses. Throws when the latter has a problem; problems of the
 * machine are only hints, because most Functions need only part of what is checked.
 */
export async function doctor(options: DoctorOptions): Promise<void> {
  const root = path.resolve(options.dataDir);
  const exists = existsSync(root);
  const isUsed = exists && isRunning(root);
  for await (const finding of checkMachine(exists ? root : process.cwd(), isUsed, options))
    console.log(lineOf(finding));
  if (!exists) return console.log(`  \u2714 data directory ${root} does not exist yet`);
  if (isUsed) {
    const way = `stop it first (${spryCommand("down")}): what is being written cannot be checked`;
    return console.log(`  - a platform is running with the data directory ${root}\n    ${way}`);
  }
  const dataDir = openDataDir(root);
  try {
    await verifyAll(dataDir, (line) => console.log(line));
  } finally {
    dataDir.unlock();
  }
}

/** A line for each finding; a `UserError` at the end when there were problems. */
export async function verifyAll(
  dataDir: Parameters<typeof verify>[0],
  report: (line: string) => void,
): Promise<void> {
  let problems = 0;
  for await (const finding of verify(dataDir)) {
    if (finding.problem !== undefined) problems++;
    report(lineOf(finding));
  }
  if (problems > 0) {
    const count = problems === 1 ? "1 problem" : `${problems} problems`;
    throw new UserError(`the data directory ${dataDir.root} has ${count}, named above`);
  }
}

/** `hanging`: of the second line and those after it, as seen from the first. */
function indented(text: string, indent: number, hanging: number): string {
  const columns = columnsOf(process.stdout);
  const lines = wrapped(text, columns && columns - indent, hanging);
  return lines.replaceAll(/^/gm, " ".repeat(indent));
}

function lineOf({ what, problem, wayOut }: Finding): string {
  if (problem === undefined) return indented(`\u2714 ${what}`, 2, 2);
  const line = indented(`\u2718 ${what}: ${problem}`, 2, 2);
  return wayOut ? `${line}\n${indented(wayOut, 4, 0)}` : line;
}
