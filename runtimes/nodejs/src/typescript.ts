import { readFileSync } from "node:fs";
import { Module, registerHooks, stripTypeScriptTypes } from "node:module";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";
import { type ModuleFile } from "./find-module.ts";
import { withoutTypeImports } from "./type-imports.ts";

/**
 * Lets a file be loaded as TypeScript from now on, without imports that only types use. False when that makes no
 * difference: the file has no types, or is neither language. Types become blanks, so lines and columns stay.
 */
export function readAsTypeScript({ path, isModulePackage }: ModuleFile): boolean {
  const text = readFileSync(path, "utf8");
  const { href } = pathToFileURL(path);
  const untyped = stripped(text, href);
  if (untyped === undefined || untyped === text) return false;
  const source = withoutTypeImports(untyped);
  // Node.js takes the types out of these by itself.
  if (source === untyped && /\.[mc]?ts$/.test(path)) return false;
  const isModule = path.endsWith(".mts") || (isModulePackage && !path.endsWith(".cts"));
  const format = isModule || !isCommonJs(source) ? "module" : "commonjs";
  registerHooks({
    load: (url, context, nextLoad) =>
      url === href ? { format, source, shortCircuit: true } : nextLoad(url, context),
  });
  return true;
}

/** Undefined when it is not TypeScript either. */
function stripped(text: string, sourceUrl: string): string | undefined {
  const emitWarning = process.emitWarning.bind(process);
  // Node.js calls this experimental; what it does to types is settled.
  process.emitWarning = () => {};
  try {
    const source = stripTypeScriptTypes(text, { sourceUrl });
    return source.slice(0, source.lastIndexOf("\n\n//# sourceURL="));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error;
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function isCommonJs(source: string): boolean {
  try {
    return Boolean(new Script(Module.wrap(source)));
  } catch {
    return false;
  }
}
