/** Code that the editor marks red: it may be applied, and its user is asked before. */
import { defaultRuntime, findRuntime, type FunctionSpec } from "@spry/function/browser";
import { languageOf } from "./code-language.ts";

export interface WrongCode {
  file: string;
  /** From 1. */
  line: number;
}

/** The first place in what has been typed since `before`; undefined where nothing is wrong, or the parser cannot be loaded. */
export async function wrongCodeIn(
  { runtime = defaultRuntime, source }: FunctionSpec,
  before?: FunctionSpec,
): Promise<WrongCode | undefined> {
  const { inline } = source;
  if (!inline) return undefined;
  const found = findRuntime(runtime);
  const isPython = runtime.startsWith("python");
  const { firstWrongLine } = await import("../editor/languages.ts");
  if (inline.source !== before?.source.inline?.source) {
    const line = firstWrongLine(inline.source, languageOf(runtime, inline.source));
    if (line !== undefined) return { file: found?.handlerFile ?? "handler.js", line };
  }
  const { dependencies = "" } = inline;
  if (isPython || dependencies === before?.source.inline?.dependencies) return undefined;
  const line = firstWrongLine(dependencies, "json");
  return line === undefined ? undefined : { file: found?.dependencyFile ?? "package.json", line };
}
