import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import path from "node:path";

export const commandTimeoutMs = 10_000;
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Of the platform's own environment, programs get nothing. */
export const commandEnvironment = { PATH: searchPath, LC_ALL: "C" };

/** Runs a program of the machine. Throws with what it said. */
export function runCommand(file: string, args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: commandTimeoutMs, env: commandEnvironment };
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const problem = problemOf(stderr, error.message);
      reject(new Error(`${path.basename(file)}: ${problem}`, { cause: error }));
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/** The beginning of what a program has said, or else what is known without it. */
export function problemOf(said: string, otherwise: string): string {
  return (said.trim() || otherwise).split("\n").slice(0, 3).join("; ");
}

/** The program's path, also where only an administrator's PATH has it. */
export function findProgram(name: string): string | undefined {
  return searchPath
    .split(":")
    .map((dir) => path.join(dir, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
