import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a program to its end and returns what it wrote; its errors tell the command and its last words. */
export async function command(file: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(file, args, { timeout: 120_000 });
    return stdout;
  } catch (cause) {
    const { stderr = "" } = cause as { stderr?: string };
    throw new Error(`${file} ${args.join(" ")}: ${stderr.trim() || "failed"}`, { cause });
  }
}
