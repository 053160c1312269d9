/**
 * TypeScript under the names that its compiler gives it: `./util.js` for `util.ts`, as it has to be written with `"module": "nodenext"`.
 */
import type { ResolveFnOutput, ResolveHookContext } from "node:module";

/**
 * Lets modules outside of `node_modules` find TypeScript by the name of the JavaScript that a compiler would make of it, and without
 * an extension, as with tsc, esbuild and tsx. A file that has the name itself is preferred. What Node.js finds is not looked at.
 * Can be run from its text: it uses nothing of this file.
 */
export function findTypeScript(): void {
  const { registerHooks } = process.getBuiltinModule("node:module");
  const { realpathSync, statSync } = process.getBuiltinModule("node:fs");
  const { fileURLToPath, pathToFileURL } = process.getBuiltinModule("node:url");
  const missing = ["MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "ERR_UNSUPPORTED_DIR_IMPORT"];
  const sources: Record<string, string[]> = {
    ".js": [".ts", ".tsx"],
    ".jsx": [".tsx", ".ts"],
    ".mjs": [".mts"],
    ".cjs": [".cts"],
  };
  const added = [".ts", ".tsx", ".js", ".json", "/index.ts", "/index.tsx", "/index.js"];

  const resolve = (
    specifier: string,
    context: ResolveHookContext,
    next: (specifier: string, context?: Partial<ResolveHookContext>) => ResolveFnOutput,
  ): ResolveFnOutput => {
    try {
      return next(specifier, context);
    } catch (error) {
      const found = sourceOf(error as NodeJS.ErrnoException & { url?: string }, specifier, context);
      if (found === undefined) throw error;
      return { url: found, shortCircuit: true };
    }
  };
  const sourceOf = (
    error: NodeJS.ErrnoException & { url?: string },
    specifier: string,
    { parentURL = "" }: ResolveHookContext,
  ): string | undefined => {
    if (!missing.includes(error.code ?? "") || !isOwn(parentURL)) return undefined;
    // Of `imports` in package.json, only the error knows where they lead.
    const path = /^Cannot find module '(\/[^'\n]+)'/.exec(error.message)?.[1];
    const named = /^\.{0,2}\//.test(specifier) ? new URL(specifier, parentURL).href : undefined;
    const target = error.url ?? named ?? (path && pathToFileURL(path).href);
    if (target === undefined || !isOwn(target)) return undefined;
    const { search, hash } = new URL(target);
    const file = fileURLToPath(target).replace(/\/$/, "");
    const [extension = ""] = /\.[cm]?jsx?$/.exec(file) ?? [];
    const base = file.slice(0, file.length - extension.length);
    const names = [
      ...(sources[extension] ?? []).map((each) => base + each),
      ...added.map((each) => file + each),
    ];
    const found = names.find((name) => statSync(name, { throwIfNoEntry: false })?.isFile());
    if (found === undefined) return undefined;
    // Node.js loads a module once, by the name of the file that links lead to.
    return `${pathToFileURL(realpathSync(found)).href}${search}${hash}`;
  };
  // Node.js runs no TypeScript of packages.
  const isOwn = (url: string) => url.startsWith("file:") && !url.includes("/node_modules/");

  registerHooks?.({ resolve });
}
