/**
 * How Python (3.11 or newer) is to be run to compile the files below `directory` to bytecode that is used without a
 * check: what is in an image never changes (PEP 552, unchecked hashes). `imagePath` is where they will be. In one
 * process, with fixed hashes, and without the `site` of this machine: which strings of a code object are interned,
 * and with that its bytes, depends on what else is loaded (seen with Python 3.13), so that the same files give the
 * same bytes only without it. Ends with 1 when a file is not Python of this version; the others are compiled.
 */
export function bytecodeCommand(
  directory: string,
  imagePath: string,
): { args: string[]; env: Record<string, string> } {
  const compileall = ["-m", "compileall", "-qq", "-f", "--invalidation-mode", "unchecked-hash"];
  const paths = ["-s", directory, "-p", imagePath, directory];
  return { args: ["-s", "-S", "-P", ...compileall, ...paths], env: { PYTHONHASHSEED: "0" } };
}
