import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

/** For each program. */
const timeoutMs = 10_000;

/**
 * The shared libraries that a program of this machine is linked to, by the absolute paths at which
 * it looks for them, its loader included; none for one that is linked statically. As `ldd` prints them:
 * `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader alone on its line.
 */
export async function sharedLibrariesOf(program: string): Promise<string[]> {
  const { lines, error } = await ldd([program]);
  if (error && !/not a dynamic executable|not a valid dynamic program/i.test(error.output))
    throw error.cause;
  return librariesIn(lines);
}

/** The same of several programs, by program. `ldd` starts a shell, so that one for all of them takes a fraction of the time. */
export async function sharedLibrariesOfAll(
  programs: readonly string[],
): Promise<Map<string, string[]>> {
  const asked = new Set(programs);
  const found = new Map<string, string[]>();
  if (asked.size > 1) {
    const { lines } = await ldd([...asked]);
    let current: string | undefined;
    for (const line of lines) {
      const heading = /^(\S.*):$/.exec(line)?.[1];
      if (heading !== undefined && asked.has(heading)) current = heading;
      else if (current !== undefined) addTo(found, current, librariesIn([line]));
    }
  }
  // Those without, those that cannot be read, and all of them where `ldd` takes one program only, as musl's does.
  for (const program of asked)
    if (!found.get(program)?.length) found.set(program, await sharedLibrariesOf(program));
  return found;
}

function addTo(found: Map<string, string[]>, program: string, libraries: readonly string[]): void {
  found.set(program, [...(found.get(program) ?? []), ...libraries]);
}

/** `error` when it ended with another code than 0, as it does for a program that is linked statically. */
async function ldd(
  programs: readonly string[],
): Promise<{ lines: string[]; error?: { output: string; cause: unknown } }> {
  const env = { PATH: "/usr/bin:/bin", LC_ALL: "C" };
  const options = { timeout: timeoutMs * programs.length, env };
  try {
    const { stdout } = await promisify(execFile)("ldd", [...programs], options);
    return { lines: stdout.split("\n") };
  } catch (cause) {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string };
    return { lines: stdout.split("\n"), error: { output: stdout + stderr, cause } };
  }
}

const librariesIn = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => {
    const file = /(?:=>\s*|^\s*)(\/\S+)\s+\(0x[0-9a-f]+\)\s*$/.exec(line)?.[1];
    return file === undefined ? [] : [file];
  });

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
