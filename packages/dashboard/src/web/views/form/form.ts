import { type FieldError, type FunctionSpec } from "@spry/function/browser";

/** What each part of the form gets. */
export interface FormProps {
  namespace: string;
  spec: FunctionSpec;
  onChange: (spec: FunctionSpec) => void;
  /** The problems of the whole Function; each part shows its own. */
  problems: readonly FieldError[];
  readOnly: boolean;
}

/** What is wrong at a path and below, for the user. */
export function problemAt(problems: readonly FieldError[], path: string): string | undefined {
  const own = problems.filter(
    (each) =>
      each.path === path || each.path.startsWith(`${path}.`) || each.path.startsWith(`${path}[`),
  );
  return own.length > 0 ? own.map(({ message }) => message).join("\n") : undefined;
}
