import { pathToFileURL } from "node:url";
import { type ModuleFile } from "./find-module.ts";
import { importModule } from "./import-module.ts";
import { mapStacksOf } from "./mapped-stacks.ts";
import { findTypeScript } from "./typescript-names.ts";

export type Exports = Record<string, unknown>;

/** In a box: a promise of a module that has a `then`, as a Proxy may have, would wait for that. */
export interface LoadedModule {
  exports: Exports;
}

/**
 * Runs a Function's code. A file that is not valid JavaScript but valid TypeScript is run as TypeScript: inline
 * sources are called `handler.js` in either language. Modules that TypeScript imports only for their types need not
 * exist, and those that it imports by the names of JavaScript may be TypeScript.
 */
export async function loadModule(file: ModuleFile): Promise<LoadedModule> {
  mapStacksOf(file.path);
  // Hooks cost 2 MB: code that has nothing to do with TypeScript does without them.
  const isTypeScript = /\.[mc]?ts$/.test(file.path);
  if (isTypeScript) findTypeScript();
  try {
    return await load(file);
  } catch (error) {
    if (!isTypeScript && isFileMissing(error as NodeJS.ErrnoException)) {
      findTypeScript();
      return await load(file);
    }
    const isMissing = (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    const isScript = file.path.endsWith(".js");
    if (isScript ? !(error instanceof SyntaxError) : !isMissing) throw error;
    const { readAsTypeScript } = await import("./typescript.ts");
    if (!readAsTypeScript(file)) throw error;
    if (!isTypeScript) findTypeScript();
    return await load(file);
  }
}

/**
 * `require` where it can be: loading the machinery for `import()` costs several milliseconds of
 * every start. Recent Node.js requires ES modules too, except those with a top-level `await`.
 */
async function load({ path, isModulePackage }: ModuleFile): Promise<LoadedModule> {
  const isModule = /\.m[jt]s$/.test(path) || (isModulePackage && /\.[jt]s$/.test(path));
  if (isModule) return { exports: (await importModule(pathToFileURL(path).href)) as Exports };
  try {
    return { exports: require(path) as Exports };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_REQUIRE_ESM" && code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
    return { exports: (await importModule(pathToFileURL(path).href)) as Exports };
  }
}

/** A file of the Function's, and not a package. */
function isFileMissing({ code = "", message }: NodeJS.ErrnoException): boolean {
  return /^(?:ERR_)?MODULE_NOT_FOUND$/.test(code) && /module '\.{0,2}\//.test(message);
}
