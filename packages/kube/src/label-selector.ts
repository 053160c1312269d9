import { StatusError } from "./errors.ts";
import { parseRequirements } from "./label-selector-parser.ts";

/** One term of a selector; all terms of a selector must hold. */
export interface LabelRequirement {
  key: string;
  operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  values: string[];
}

/** `meta/v1 LabelSelector`, as objects carry it (`spec.selector` of a Deployment, say). */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

type Labels = Record<string, string> | undefined;

const keyPattern =
  /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const valuePattern = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** A label key: an optional DNS prefix and a name of at most 63 characters. */
export function isLabelKey(key: string): boolean {
  return keyPattern.test(key);
}

/** A label value: empty, or at most 63 characters that begin and end with a letter or digit. */
export function isLabelValue(value: string): boolean {
  return valuePattern.test(value);
}

/**
 * Reads the text form that travels in `?labelSelector=`: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
 * Throws a `StatusError` 400 that says which part is wrong.
 */
export function parseLabelSelector(text: string): LabelRequirement[] {
  return parseRequirements(text);
}

/** The terms of a structured selector. An empty selector has none, and so selects everything. */
export function requirementsOf(selector: LabelSelector): LabelRequirement[] {
  const requirements: LabelRequirement[] = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]) => ({ key, operator: "In", values: [value] }),
  );
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const requirement = { key, operator: operator as LabelRequirement["operator"], values };
    requirements.push(checked(requirement, `${key} ${operator}`));
  }
  return requirements;
}

/** The text form; `parseLabelSelector` reads it back. */
export function formatLabelSelector(requirements: readonly LabelRequirement[]): string {
  return requirements.map(formatRequirement).join(",");
}

/** Whether all terms hold. As in Kubernetes, a missing key satisfies `NotIn`. */
export function matchesLabels(requirements: readonly LabelRequirement[], labels: Labels): boolean {
  return requirements.every((requirement) => matchesRequirement(requirement, labels));
}

/** Whether labels satisfy a structured selector. A missing selector matches nothing. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector !== undefined && matchesLabels(requirementsOf(selector), labels);
}

function matchesRequirement({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      if (value === undefined || !/^-?\d{1,18}$/.test(value)) return false;
      const bound = BigInt(values[0] ?? "0");
      return operator === "Gt" ? BigInt(value) > bound : BigInt(value) < bound;
    }
  }
}

function checked(requirement: LabelRequirement, text: string): LabelRequirement {
  const { key, operator, values } = requirement;
  if (!isLabelKey(key)) throw badSelector(text, `has an invalid label key ${JSON.stringify(key)}`);
  const wrong = values.find((value) => !isLabelValue(value));
  if (wrong !== undefined) {
    throw badSelector(text, `has an invalid label value ${JSON.stringify(wrong)}`);
  }
  const count = { In: 1, NotIn: 1, Exists: 0, DoesNotExist: 0, Gt: 1, Lt: 1 }[operator];
  if (count === undefined) throw badSelector(text, `has an unknown operator ${operator}`);
  if (count === 0 ? values.length > 0 : values.length === 0) {
    throw badSelector(text, `needs ${count === 0 ? "no values" : "values"} with ${operator}`);
  }
  if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1 || !/^-?\d{1,18}$/.test(values[0] ?? "")) {
      throw badSelector(text, `needs one whole number with ${operator}`);
    }
  }
  return requirement;
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case "In":
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(",")})`;
    case "NotIn":
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${values.join(",")})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "Gt":
      return `${key}>${values[0]}`;
    case "Lt":
      return `${key}<${values[0]}`;
  }
}

function badSelector(text: string, problem: string): StatusError {
  const shown = JSON.stringify(text.slice(0, 200));
  return new StatusError({
    code: 400,
    message: `unable to parse selector ${shown}: it ${problem}`,
  });
}
