import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Container } from "@spry/kube";
import { cutBeginning, readHead, readTail } from "./log-file.ts";

const maxTerminationMessage = 4096;
const maxLogMessage = { lines: 80, bytes: 2048 };
/** Earlier runs of which there is a log. */
const keptRuns = 3;
const maxEarlierBytes = 1024 * 1024;
export const defaultTerminationLog = "/dev/termination-log";

/** The files of one run of a container: its log, and what it leaves as its termination message. */
export interface RunFiles {
  logFile: string;
  terminationLog: string;
}

export function runFilesOf(podDir: string, container: string, run: number): RunFiles {
  return {
    logFile: logFileOf(podDir, container, run),
    terminationLog: path.join(directoryOf(podDir, container), "termination-log"),
  };
}

export function logFileOf(podDir: string, container: string, run: number): string {
  return path.join(directoryOf(podDir, container), `${run}.log`);
}

/** Before a run begins: an empty termination message, and of the logs those of the last runs alone. */
export function prepareRunFiles(podDir: string, container: string, run: number): RunFiles {
  const files = runFilesOf(podDir, container, run);
  const directory = directoryOf(podDir, container);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(files.terminationLog, "", { mode: 0o600 });
  removeLogs(directory, run);
  return files;
}

/** Of a run that has ended: at most 4096 bytes of its own, or the end of its log where its spec asks for that. */
export async function terminationMessage(
  { logFile, terminationLog }: RunFiles,
  { terminationMessagePolicy }: Container,
  exitCode: number,
): Promise<string> {
  const text = await readHead(terminationLog, maxTerminationMessage).catch(() => "");
  const wantsLog = terminationMessagePolicy === "FallbackToLogsOnError";
  if (text || !wantsLog || exitCode === 0) return text;
  return readTail(logFile, maxLogMessage.lines, maxLogMessage.bytes).catch(() => "");
}

function directoryOf(podDir: string, container: string): string {
  return path.join(podDir, "containers", container);
}

/** Of a container's earlier runs, the last one's log is kept, as a kubelet does, and the ends of the two logs before it. */
function removeLogs(directory: string, run: number): void {
  for (const name of readdirSync(directory)) {
    const [, past, rotated] = /^(\d+)\.log(\..+)?$/.exec(name) ?? [];
    if (past === undefined || Number(past) >= run - 1) continue;
    const file = path.join(directory, name);
    if (Number(past) < run - keptRuns || rotated !== undefined) rmSync(file, { force: true });
    else keepEnd(file);
  }
}

/** They count as the Pod's storage, as all logs do. */
function keepEnd(file: string): void {
  const { size, atime, mtime } = statSync(file);
  if (size <= maxEarlierBytes) return;
  cutBeginning(file, size - maxEarlierBytes);
  // From it a reader learns when the lines were written.
  utimesSync(file, atime, mtime);
}
