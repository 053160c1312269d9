import { type Answer } from "./answer.ts";
import { type Step } from "./step.ts";

export interface Difference {
  /** `<step>.<field>`, the step counted from 0. */
  path: string;
  embedded: unknown;
  real: unknown;
}

/** Where two servers' answers to one step differ; at most `maxDifferences`. */
export function differencesOf(index: number, embedded: Answer, real: Answer): Difference[] {
  const found: Difference[] = [];
  if (embedded.status !== real.status) {
    // One succeeded where the other did not: comparing an object with a failure field by field tells nothing.
    found.push({ path: `${index}.status`, embedded: outcome(embedded), real: outcome(real) });
    return found;
  }
  visit(embedded, real, String(index), found);
  return found.slice(0, maxDifferences);
}

const maxDifferences = 40;

/** Where two values differ; at most `maxDifferences`. */
export function differencesBetween(embedded: object, real: object): Difference[] {
  const found: Difference[] = [];
  const one = embedded as Record<string, unknown>;
  const other = real as Record<string, unknown>;
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
    visit(one[key], other[key], key, found);
  return found.slice(0, maxDifferences);
}

function outcome({ status, body }: Answer): string {
  const message = (body as { message?: string } | null)?.message;
  return message === undefined ? String(status) : `${status} ${message}`;
}

function visit(embedded: unknown, real: unknown, path: string, found: Difference[]): void {
  if (Object.is(embedded, real)) return;
  const bothLists =
    Array.isArray(embedded) && Array.isArray(real) && embedded.length === real.length;
  if (bothLists || (isObject(embedded) && isObject(real))) {
    const one = embedded as Record<string, unknown>;
    const other = real as Record<string, unknown>;
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      visit(one[key], other[key], `${path}.${key}`, found);
    }
    return;
  }
  found.push({ path, embedded, real });
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function told(step: Step, { path, embedded, real }: Difference): string {
  return `${step.method} ${step.path}\n    ${path}\n      embedded: ${shown(embedded)}\n      real:     ${shown(real)}`;
}

export function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "absent").slice(0, 600);
}
