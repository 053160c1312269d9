/** What the definition of Subscriptions requires of the members that are ours, checked again: not all of them come by it. */
import { bounds } from "../bounds.ts";

/** Least and greatest value. */
export const deliveryRanges = {
  maxAttempts: [1, 1_000],
  backoffSeconds: [1, 3_600],
  maxBackoffSeconds: [1, 3_600],
  jitterPercent: [0, 100],
  timeoutSeconds: [1, 600],
  deadlineSeconds: [1, 30 * 86_400],
} as const;
export const orderByPattern = "^[a-z0-9]+$";
export const maxOrderByLength = 64;
export const maxFilterAttributes = 16;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What is wrong with filters, whatever they are; undefined: nothing. */
export function filtersProblem(filters: unknown): string | undefined {
  if (filters === undefined) return undefined;
  if (!Array.isArray(filters)) return "must be a list of filters";
  if (filters.length > bounds.filters) return `must have at most ${bounds.filters} filters`;
  return filters.every((each) => isFilter(each, true))
    ? undefined
    : `each filter must have one of exact, prefix, suffix and not, with at most ${maxFilterAttributes} attributes`;
}

function isFilter(filter: unknown, mayNegate: boolean): boolean {
  if (!isObject(filter)) return false;
  const [only, ...others] = Object.entries(filter);
  if (!only || others.length > 0) return false;
  const [kind, value] = only;
  if (kind === "not") return mayNegate && isFilter(value, false);
  if (!["exact", "prefix", "suffix"].includes(kind) || !isObject(value)) return false;
  const texts = Object.values(value);
  return (
    texts.length <= maxFilterAttributes &&
    texts.every((text) => typeof text === "string" && text.length <= bounds.nameLength)
  );
}

/** Path, value and what is wrong with it. */
export function deliveryProblems(delivery: unknown): [string, string, string][] {
  if (delivery === undefined) return [];
  if (!isObject(delivery)) return [["spec.delivery", shown(delivery), "must be an object"]];
  const problems: [string, string, string][] = [];
  const check = (name: string, isGood: (value: unknown) => boolean, detail: string) => {
    const value = delivery[name];
    if (value !== undefined && !isGood(value))
      problems.push([`spec.delivery.${name}`, shown(value), detail]);
  };
  for (const [name, [least, most]] of Object.entries(deliveryRanges)) {
    const isGood = (value: unknown) =>
      Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
    check(name, isGood, `must be a whole number from ${least} to ${most}`);
  }
  check(
    "orderBy",
    (value) =>
      typeof value === "string" &&
      value.length <= maxOrderByLength &&
      new RegExp(orderByPattern).test(value),
    `must be the name of an attribute: at most ${maxOrderByLength} lower-case letters and digits`,
  );
  check(
    "deadLetters",
    (value) => value === "Keep" || value === "Discard",
    "must be Keep or Discard",
  );
  return problems;
}

/** A value as it is shown in a message. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (text ?? "").slice(0, 100);
}
