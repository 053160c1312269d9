import { readFileSync } from "node:fs";
import { Module, registerHooks, stripTypeScriptTypes } from "node:module";
import { pathToFileURL } from "node:url";
import { compileFunction, Script } from "node:vm";
import { type ModuleFile } from "./find-module.ts";
import { withoutTypeImports } from "./type-imports.ts";

/**
 * Lets a file be loaded as TypeScript from now on, without imports that only types use. False when that makes no
 * difference: the file has no types, or is neither language. Types become blanks, so lines and columns stay. Throws the
 * compiler's error when the file is TypeScript up to a place that is wrong in either language.
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
    const isOther = (error as NodeJS.ErrnoException).code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX";
    if (isOther || isReadFurther(error as Error, text)) throw error;
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Whether the compiler has understood more of a text than JavaScript's parser does: there are types in between. */
function isReadFurther(error: Error, text: string): boolean {
  const typed = placeOf(error);
  const plain = placeOf(scriptError(text));
  if (!typed || !plain) return false;
  return typed.line > plain.line || (typed.line === plain.line && typed.column > plain.column);
}

/** What is wrong with a text as JavaScript. Node.js has no place for errors of ES modules: it is read as if it were none. */
function scriptError(text: string): Error | undefined {
  const blank = (found: string) => found.replaceAll(/\S/g, " ");
  const body = text
    .replaceAll(/^[ \t]*import\b[^;"'(]*["'][^"'\n]*["'];?/gm, blank)
    .replaceAll(/^([ \t]*)export\s+default\b/gm, (_, indent: string) => `${indent}void          `)
    .replaceAll(/^[ \t]*export\b(?=\s+(?:async|function|class|const|let|var)\b)/gm, blank);
  try {
    // Begun in the first line, so that lines stay.
    compileFunction(`return async () => { ${body}\n};`);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** A stack begins with `file:line`, lines of the code, and a mark below the place. Node.js writes tabs as four blanks in some of them. */
function placeOf(error: Error | undefined): { line: number; column: number } | undefined {
  const [head = "", ...lines] = (error?.stack ?? "").split("\n");
  const line = Number(/:(\d+)$/.exec(head)?.[1]);
  const at = lines.findIndex((each) => /^\s*\^+$/.test(each));
  if (!(line > 0) || at < 1) return undefined;
  const mark = lines[at]?.indexOf("^") ?? 0;
  const shown = lines[at - 1]?.slice(0, mark) ?? "";
  return { line, column: shown.replaceAll("\t", "    ").length };
}

function isCommonJs(source: string): boolean {
  try {
    return Boolean(new Script(Module.wrap(source)));
  } catch {
    return false;
  }
}
