import { servingBounds } from "./serving.ts";
import { type FunctionSpec } from "./types.ts";
import { type FieldError } from "./field-error.ts";

const tagPattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** What is wrong with `concurrency`, `timeoutSeconds` and `traffic`. */
export function validateServing(spec: FunctionSpec): FieldError[] {
  return [...validateConcurrency(spec), ...validateTimeout(spec), ...validateTraffic(spec)];
}

function validateConcurrency({ concurrency = {} }: FunctionSpec): FieldError[] {
  const { target, limit } = concurrency;
  const errors = Object.entries({ target, limit }).flatMap(([field, value]) =>
    outOfBounds(`spec.concurrency.${field}`, field, value, servingBounds.concurrency),
  );
  if (target !== undefined && limit !== undefined && target > limit) {
    const message = "target should be less than or equal limit";
    errors.push({ path: "spec.concurrency", message });
  }
  return errors;
}

function validateTimeout({ timeoutSeconds }: FunctionSpec): FieldError[] {
  const path = "spec.timeoutSeconds";
  return outOfBounds(path, "timeoutSeconds", timeoutSeconds, servingBounds.timeoutSeconds);
}

function validateTraffic({ traffic = [] }: FunctionSpec): FieldError[] {
  if (traffic.length === 0) return [];
  const errors: FieldError[] = [];
  const { shares, tagLength } = servingBounds;
  if (traffic.length > shares) {
    errors.push({ path: "spec.traffic", message: `traffic should have at most ${shares} entries` });
  }
  const tags = new Set<string>();
  for (const [index, { revision, latest, percent, tag }] of traffic.entries()) {
    const path = `spec.traffic[${index}]`;
    if ((revision !== undefined) === (latest === true)) {
      errors.push({ path, message: "Use revision or latest: true" });
    }
    errors.push(...outOfBounds(`${path}.revision`, "revision", revision, [1, 2 ** 31 - 1]));
    errors.push(...outOfBounds(`${path}.percent`, "percent", percent, [0, 100]));
    if (tag === undefined) continue;
    if (!tagPattern.test(tag) || tag.length > tagLength) {
      const message = `tag ${tag} is not a DNS-1035 label of at most ${tagLength} characters`;
      errors.push({ path: `${path}.tag`, message });
    }
    if (tags.has(tag)) errors.push({ path: `${path}.tag`, message: `tag ${tag} is there twice` });
    tags.add(tag);
  }
  const sum = traffic.reduce((total, { percent = 0 }) => total + percent, 0);
  if (sum !== 100) {
    const message = `Percentages of traffic should add up to 100, but add up to ${sum}`;
    errors.push({ path: "spec.traffic", message });
  }
  return errors;
}

function outOfBounds(
  path: string,
  field: string,
  value: number | undefined,
  [least, most]: readonly [number, number],
): FieldError[] {
  if (value === undefined || (value >= least && value <= most)) return [];
  return [{ path, message: `${field} should be between ${least} and ${most}` }];
}
