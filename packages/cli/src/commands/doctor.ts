import { existsSync } from "node:fs";
import { type GlobalOptions } from "../connection.ts";
import { checkMachine } from "../platform/verify/machine.ts";
import path from "node:path";
import { isRunning, openDataDir } from "../platform/data-dir.ts";
import { type Finding } from "../platform/verify/finding.ts";
import { verify } from "../platform/verify/verify.ts";
import { printableJson } from "../printable-json.ts";
import { UserError } from "../user-error.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { spryCommand } from "../shown-command.ts";

export interface DoctorOptions extends GlobalOptions {
  dataDir: string;
  output?: string;
}

/**
 * Checks this machine, and a data directory that no platform uses. Throws when the latter has a problem; problems of the
 * machine are only hints, because most Functions need only part of what is checked.
 */
export async function doctor(options: DoctorOptions): Promise<void> {
  const root = path.resolve(options.dataDir);
  const exists = existsSync(root);
  const isUsed = exists && isRunning(root);
  const findings: Finding[] = [];
  const isJson = options.output === "json";
  const report = (finding: Finding) =>
    isJson ? void findings.push(finding) : console.log(lineOf(finding));
  try {
    for await (const finding of checkMachine(exists ? root : process.cwd(), isUsed, options))
      report(finding);
    await reportData({ root, exists, isUsed }, report);
  } finally {
    if (isJson) console.log(printableJson(findings.map(fieldsOf), 2));
  }
}

async function reportData(
  { root, exists, isUsed }: { root: string; exists: boolean; isUsed: boolean },
  report: (finding: Finding) => void,
): Promise<void> {
  if (!exists) return report({ what: `data directory ${root} does not exist yet`, isNote: true });
  if (isUsed)
    return report({
      what: `a platform is running with the data directory ${root}`,
      isNote: true,
      wayOut: `stop it first (${spryCommand("down")}): what is being written cannot be checked`,
    });
  const dataDir = openDataDir(root);
  try {
    await verifyEach(dataDir, report);
  } finally {
    dataDir.unlock();
  }
}

/** For programs. */
function fieldsOf({ what, problem, isNote, wayOut }: Finding): object {
  const state = problem !== undefined ? "problem" : isNote ? "note" : "ok";
  return { state, what, problem, wayOut };
}

/** A line for each finding; a `UserError` at the end when there were problems. */
export const verifyAll = (
  dataDir: Parameters<typeof verify>[0],
  report: (line: string) => void,
): Promise<void> => verifyEach(dataDir, (finding) => report(lineOf(finding)));

async function verifyEach(
  dataDir: Parameters<typeof verify>[0],
  report: (finding: Finding) => void,
): Promise<void> {
  let problems = 0;
  for await (const finding of verify(dataDir)) {
    if (finding.problem !== undefined) problems++;
    report(finding);
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

function lineOf({ what, problem, isNote, wayOut }: Finding): string {
  const sign = problem !== undefined ? "\u2718" : isNote ? "-" : "\u2714";
  const line = indented(`${sign} ${what}${problem === undefined ? "" : `: ${problem}`}`, 2, 2);
  return wayOut ? `${line}\n${indented(wayOut, 4, 0)}` : line;
}
