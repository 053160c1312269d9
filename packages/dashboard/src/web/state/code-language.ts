import type { EditorLanguage } from "../editor/languages.ts";

const maxLooked = 20_000;

/** TypeScript where the code looks like it: types are stripped by the runtime, so both are written inline. */
export function languageOf(runtime: string, source: string): EditorLanguage {
  if (runtime.startsWith("python")) return "python";
  const isTyped =
    /^\s*(?:interface|type)\s+\w+|\)\s*:\s*\w|\w\s*:\s*(?:string|number|boolean|unknown|any|Request)\b|\bas const\b/m;
  // With each key: not over all of a very long source.
  return isTyped.test(source.slice(0, maxLooked)) ? "typescript" : "javascript";
}
