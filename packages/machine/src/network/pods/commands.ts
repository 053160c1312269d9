import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import path from "node:path";

const timeoutMs = 10_000;
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs a program of the machine. Throws with what it said. */
export function runCommand(file: string, args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, env: { PATH: searchPath, LC_ALL: "C" } };
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const said = (stderr.trim() || error.message).split("\n").slice(0, 3).join("; ");
      reject(new Error(`${path.basename(file)}: ${said}`, { cause: error }));
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
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
