/** The debuggers' ports of `spry dev --inspect`. */
import { type Runtime } from "@spry/function";

type Language = Runtime["language"];

export const defaultInspectPorts = { nodejs: 9229, python: 5678 };

/** Of several Functions each has its own: the next one of its language's, or the next after the given one. */
export function inspectPorts(languages: readonly Language[], given?: number): number[] {
  const next = { ...defaultInspectPorts };
  return languages.map((language, index) =>
    given === undefined ? next[language]++ : given + index,
  );
}
