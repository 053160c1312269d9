import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pipWithoutCode } from "./careful-pip.ts";
import { type InstallerRun, runInstaller, shownLine } from "./installer.ts";
import { settledByFiles } from "./operator-settings.ts";
import { UserError } from "./user-error.ts";

export interface PipRun extends InstallerRun {
  /** Where packages go. */
  target: string;
  /** A `pip.conf` with indexes and credentials; what it says wins over the interpreter's own. */
  config?: string | undefined;
  /** Nothing that has to be built from source, which runs foreign code. */
  onlyWheels?: boolean | undefined;
  /** What the author should know when something is missing. */
  note?: string | undefined;
}

const shownLines = 12;

/** What pip says when the index or the way to it is to blame: the next try may do better. */
const temporary =
  /after connection broken by|Max retries exceeded|Could not fetch URL|Temporary failure in name resolution|timed out|HTTP error (?:429|5\d\d)|\b(?:429|5\d\d) Server Error|CERTIFICATE_VERIFY_FAILED|No space left on device|pip is missing/;

/** Installs what `requirements.txt` in the run's directory asks for. */
export async function installRequirements(run: PipRun): Promise<void> {
  const args = [
    "--no-compile",
    "--no-warn-conflicts",
    `--target=${run.target}`,
    "--requirement=requirements.txt",
  ];
  await runPip("install", run, args, run.onlyWheels ? await pipWithoutCode(run, "refuse") : []);
}

/** Gets what a file of requirements asks for, and what that needs, into the run's target, as far as there are wheels. */
export async function downloadWheels(run: PipRun, requirements: string): Promise<void> {
  const args = [`--dest=${run.target}`, `--requirement=${requirements}`];
  try {
    const pip = await pipWithoutCode(run, "refuse");
    await runPip("download", { ...run, onlyWheels: true }, args, pip);
  } catch (error) {
    // Whether it is missed will be seen when all is installed.
    if (!(error instanceof UserError)) throw error;
  }
}

/** Runs the pip that belongs to the interpreter on `PATH`. Its output is shown only when it fails. */
export async function runPip(
  command: string,
  run: PipRun,
  more: readonly string[],
  [program = "pip", ...first]: readonly string[] = [],
): Promise<void> {
  const args = [
    command,
    "--progress-bar=off",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    // An index that is away is noticed in seconds; the Job tries again.
    "--retries=2",
    ...(run.onlyWheels ? ["--only-binary=:all:"] : []),
    ...more,
  ];
  const env = pipEnvironment(run);
  const { code, output } = await runInstaller(program, [...first, ...args], { ...run, env });
  if (code === 0) return;
  const message = `installing dependencies: pip ${command} ended with ${code}\n${meaningfulPipLines(output)}`;
  if (temporary.test(output) || typeof code === "string") throw new Error(message);
  throw new UserError(run.note === undefined ? message : `${message}\n${run.note}`);
}

/** What pip is to find in its environment; makes the directory in which it unpacks. */
export function pipEnvironment({
  home,
  config,
}: Pick<PipRun, "home" | "config">): Record<string, string | undefined> {
  // It unpacks there first, as much as there is: where that is looked at.
  const unpacking = join(home, "tmp");
  mkdirSync(unpacking, { recursive: true });
  return {
    ...settledByFiles([config], "PIP_"),
    TMPDIR: unpacking,
    ...(config !== undefined && { PIP_CONFIG_FILE: config }),
    PYTHONDONTWRITEBYTECODE: "1",
    // What is built from source is the same again.
    SOURCE_DATE_EPOCH: "315532800",
  };
}

/** Of what pip says: what it is doing, and advice for those who sit before it. */
const passing =
  /^(?:\[notice\]|\s*note: |INFO: |WARNING: Running pip as|Looking in |Collecting |Processing |Requirement already |Installing |Building wheels|Successfully |Saved )|^\s*(?:Downloading|Using cached|Obtaining dependency|Getting requirements|Installing build|Preparing (?:metadata|wheel)|Building wheel|Created wheel|Stored in|File was already|Link requires) ?/;

/** Without pip's warnings, where it says anything else: an error may come after many of them. */
function errorsOf(lines: readonly string[]): readonly string[] {
  const errors = lines.filter((line) => !/^(?:WARNING|DEPRECATION): /.test(line));
  return errors.length > 0 ? errors : lines;
}

/**
 * pip's last lines without its progress messages and without passwords. When the index could not be reached, pip
 * reports after that that it has no such package, which would mislead: the index is named instead.
 */
export function meaningfulPipLines(output: string): string {
  const all = output.split("\n").map((line) => line.replace(/^(?:ERROR|error): /, "").trimEnd());
  const lines = all.filter((line) => line.trim() !== "" && !passing.test(line));
  const broken = lines.findLast((line) => line.includes("after connection broken by"));
  const reason = broken && /after connection broken by '(.*)'/.exec(broken)?.[1];
  const misleading = /^Could not find a version|^No matching distribution|^WARNING: Retrying/;
  const kept = reason
    ? [
        ...all.filter((line) => line.startsWith("Looking in indexes: ")),
        ...lines.filter((line) => !misleading.test(line)),
        reason.replace(/<[^>]*>: /, ""),
      ]
    : errorsOf(lines);
  return kept.slice(-shownLines).map(shownLine).join("\n");
}
