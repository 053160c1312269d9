import { type Environment } from "@marcbachmann/cel-js";

/** A part of Kubernetes' CEL that the language itself does not have (`k8s.io/apiserver/pkg/cel/library`). */
export interface Library {
  types?: Record<string, new (...args: never[]) => object>;
  /** Names before a dot: `sets` in `sets.contains(…)`. */
  constants?: Record<string, { type: string; value: object }>;
  functions: [string, (...args: never[]) => unknown][];
  operators?: [string, (left: never, right: never) => unknown][];
}

/** What stands before the dot: functions are found by its class. */
export class CelNamespace {
  readonly kind = "namespace";
}

export function addLibrary(environment: Environment, library: Library): void {
  for (const [name, constructor] of Object.entries(library.types ?? {}))
    environment.registerType(name, constructor);
  for (const [name, { type, value }] of Object.entries(library.constants ?? {}))
    environment.registerConstant(name, type, value);
  for (const [signature, handler] of library.functions) {
    try {
      environment.registerFunction(signature, handler as (...args: unknown[]) => unknown);
    } catch (error) {
      // The implementation of the language may have gained the function itself.
      if (!/already|overlap|exist/i.test(String(error))) throw error;
    }
  }
  for (const [signature, handler] of library.operators ?? [])
    environment.registerOperator(signature, handler as (left: unknown, right: unknown) => unknown);
}
