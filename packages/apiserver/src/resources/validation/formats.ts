import {
  type LabelSelector,
  labelKeyProblems,
  labelValueProblems,
  parseQuantity,
} from "@spry/kube";
import { isIP } from "node:net";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems } from "../metadata.ts";
import { isNumber } from "../../json.ts";

/** What values of built-in kinds have in common, each rule in the words of Kubernetes. */

export const protocols = ["SCTP", "TCP", "UDP"] as const;
const portRange = "must be between 1 and 65535, inclusive";
const addressRule = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const cidrRule = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const percentRule =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

export function isPort(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}

export function checkPort(value: unknown, path: string, errors: FieldErrors): void {
  if (!isPort(value)) errors.invalid(path, value ?? 0, portRange);
}

/** A port by number, or by the name of a container's. */
export function checkPortOrName(value: unknown, path: string, errors: FieldErrors): void {
  if (typeof value === "string") checkPortName(value, path, errors);
  else checkPort(value, path, errors);
}

export function checkPortName(name: string, path: string, errors: FieldErrors): void {
  const problems = [
    [name.length > 15, "must be no more than 15 characters"],
    [
      !/^[-a-z0-9]*$/.test(name),
      "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    ],
    [!/[a-z]/.test(name), "must contain at least one letter (a-z)"],
    [name.includes("--"), "must not contain consecutive hyphens"],
    [name !== "" && /^-|-$/.test(name), "must not begin or end with a hyphen"],
  ] as const;
  for (const [found, problem] of problems) if (found) errors.invalid(path, name, problem);
}

export function checkProtocol(
  value: string | undefined,
  path: string,
  errors: FieldErrors,
  supported: readonly string[] = protocols,
): void {
  if (!value) errors.required(path);
  else if (!supported.includes(value)) errors.unsupported(path, value, supported);
}

export function checkName(
  name: string,
  rule: "label" | "subdomain" | "service",
  path: string,
  errors: FieldErrors,
): void {
  for (const problem of nameProblems(name, rule)) errors.invalid(path, name, problem);
}

/** An optional value out of a set; one that is missing is not reported. */
export function checkOneOf(
  value: string | undefined,
  supported: readonly string[],
  path: string,
  errors: FieldErrors,
): void {
  if (value !== undefined && !supported.includes(value)) errors.unsupported(path, value, supported);
}

/** Fields that, where they are there, are not negative. */
export function checkNotNegative<T extends object>(
  holder: T,
  fields: readonly (keyof T & string)[],
  path: string,
  errors: FieldErrors,
): void {
  for (const field of fields) {
    const value = holder[field];
    if (isNumber(value) && value < 0) {
      errors.invalid(`${path}.${field}`, value, "must be greater than or equal to 0");
    }
  }
}

export function checkAddress(value: string, path: string, errors: FieldErrors): void {
  if (!isIP(value)) errors.invalid(path, value, addressRule);
}

export function isCidr(value: string): boolean {
  const [address = "", bits = "", ...rest] = value.split("/");
  const version = isIP(address);
  return (
    rest.length === 0 &&
    version !== 0 &&
    /^\d{1,3}$/.test(bits) &&
    Number(bits) <= (version === 4 ? 32 : 128)
  );
}

export function checkCidr(value: string, path: string, errors: FieldErrors): void {
  if (!isCidr(value)) errors.invalid(path, value, cidrRule);
}

/** A count, or a percentage of at most 100. */
export function checkAmount(
  value: unknown,
  path: string,
  errors: FieldErrors,
  limited = true,
): void {
  if (isNumber(value)) {
    if (value < 0) errors.invalid(path, value, "must be greater than or equal to 0");
  } else if (typeof value === "string") {
    if (!/^\d+%$/.test(value)) errors.invalid(path, value, percentRule);
    else if (limited && Number.parseInt(value) > 100) {
      errors.invalid(path, value, "must not be greater than 100%");
    }
  }
}

/** `meta/v1 LabelSelector`. Returns whether it is a good one. */
export function checkSelector(
  selector: LabelSelector | null | undefined,
  path: string,
  errors: FieldErrors,
): boolean {
  const before = errors.all.length;
  const labels = Object.entries(selector?.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [key, value] of labels) {
    checkLabelKey(key, `${path}.matchLabels`, errors);
    for (const problem of labelValueProblems(value)) {
      errors.invalid(`${path}.matchLabels`, value, problem);
    }
  }
  for (const [index, each] of (selector?.matchExpressions ?? []).entries()) {
    checkExpression(each, `${path}.matchExpressions[${index}]`, errors);
  }
  return errors.all.length === before;
}

type Expression = NonNullable<LabelSelector["matchExpressions"]>[number];

function checkExpression(
  { key = "", operator, values = [] }: Partial<Expression>,
  path: string,
  errors: FieldErrors,
): void {
  const isSet = operator === "In" || operator === "NotIn";
  if (isSet && values.length === 0) {
    errors.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
  } else if ((operator === "Exists" || operator === "DoesNotExist") && values.length > 0) {
    const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    errors.forbidden(`${path}.values`, detail);
  } else if (!isSet && operator !== "Exists" && operator !== "DoesNotExist") {
    errors.invalid(`${path}.operator`, operator ?? "", "not a valid selector operator");
  }
  checkLabelKey(key, `${path}.key`, errors);
  for (const [index, value] of values.entries()) {
    for (const problem of labelValueProblems(value)) {
      errors.invalid(`${path}.values[${index}]`, value, problem);
    }
  }
}

export function checkLabelKey(key: string, path: string, errors: FieldErrors): void {
  for (const problem of labelKeyProblems(key)) errors.invalid(path, key, problem);
}

/** An amount that is not negative. */
export function checkQuantity(amount: string, path: string, errors: FieldErrors): void {
  if (parseQuantity(amount).nano < 0n) {
    errors.invalid(path, amount, "must be greater than or equal to 0");
  }
}
