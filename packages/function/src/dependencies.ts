import { runtimeOf } from "./runtimes.ts";
import { type Function } from "./types.ts";

/** The dependencies of an inline source as they are built: trimmed, and never missing. */
export function dependenciesOf(fn: Function): string {
  return fn.spec.source.inline?.dependencies?.trim() || runtimeOf(fn).noDependencies;
}
