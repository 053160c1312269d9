import { execFile } from "node:child_process";
import { promisify } from "node:util";

const timeoutMs = 10_000;

/**
 * The shared libraries that a program of this machine is linked to, by the absolute paths at which
 * it looks for them, its loader included; none for one that is linked statically. As `ldd` tells:
 * `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone on its line.
 */
export async function sharedLibrariesOf(program: string): Promise<string[]> {
  const options = { timeout: timeoutMs, env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } };
  const { stdout } = await promisify(execFile)("ldd", [program], options).catch(
    (error: unknown) => {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      if (/not a dynamic executable|not a valid dynamic program/i.test(stdout + stderr))
        return { stdout: "" };
      throw error;
    },
  );
  return stdout.split("\n").flatMap((line) => {
    const file = /(?:=>\s*|^\s*)(\/\S+)\s+\(0x[0-9a-f]+\)\s*$/.exec(line)?.[1];
    return file === undefined ? [] : [file];
  });
}
