/** esbuild as a program: its library takes longer to load than most handlers take to be read. */
import { createRequire } from "node:module";
import { tryProgram } from "@spry/kube";

/**
 * Runs esbuild's program with these arguments; what it would print is not read. Resolves to whether it ended without an error, or to
 * undefined where the program cannot be found or started: the library then knows more.
 */
export async function runEsbuild(
  args: readonly string[],
  options: { cwd: string },
): Promise<boolean | undefined> {
  const program = programFile();
  if (program === undefined) return undefined;
  return new Promise((resolve) => {
    const child = tryProgram(program, args, { ...options, stdio: "ignore" });
    if ("failure" in child) resolve(undefined);
    else child.once("exit", (code) => resolve(code === 0));
  });
}

/** In the package that npm has installed for this machine, next to the library's. */
function programFile(): string | undefined {
  const { platform, arch } = process;
  if (platform === "win32") return undefined;
  try {
    const library = createRequire(import.meta.url).resolve("esbuild/package.json");
    return createRequire(library).resolve(`@esbuild/${platform}-${arch}/bin/esbuild`);
  } catch {
    return undefined;
  }
}
