import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
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

/** Older C libraries load these when the first name is looked up. */
const lookupLibraries = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

/**
 * What packages with native code expect of every Linux without bringing it, in the C library's directory: its parts, which
 * were files of their own before glibc 2.34, and the compiler's run-time libraries (PEP 599, manylinux2014).
 */
const expectedByPackages = [
  "libm.so.6",
  "librt.so.1",
  "libdl.so.2",
  "libpthread.so.0",
  "libutil.so.1",
  "libgcc_s.so.1",
  "libstdc++.so.6",
];

/** Given the libraries of a program: those that it, and packages that it loads, open at run time, as far as they exist. */
export function librariesLoadedLater(libraries: readonly string[]): string[] {
  const libc = libraries.find((library) => basename(library) === "libc.so.6");
  if (libc === undefined) return [];
  const names = [...lookupLibraries, ...expectedByPackages];
  return names.map((name) => join(dirname(libc), name)).filter((file) => existsSync(file));
}
