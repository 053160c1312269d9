import {
  type Annotations,
  autoscalingGroup,
  autoscalingKeys,
  classes,
  find,
} from "../annotations.ts";
import {
  type AutoscalerSettings,
  leastTarget,
  windowBounds,
} from "../settings/autoscaler-settings.ts";
import { formatDuration, parseDuration } from "../settings/duration.ts";
import { FieldErrors } from "./field-error.ts";

const maxInt32 = 2 ** 31 - 1;
const integer = /^[+-]?\d+$/;

/** `autoscaling.ValidateAnnotations` of Knative: what a Revision or its template may say about its scale. */
export function checkAutoscaling(
  annotations: Annotations | undefined,
  settings: AutoscalerSettings,
): FieldErrors {
  const errors = new FieldErrors();
  checkClass(errors, annotations);
  checkScales(errors, annotations, settings);
  checkNumbers(errors, annotations);
  checkDurations(errors, annotations);
  checkMetric(errors, annotations, settings);
  const algorithm = find(annotations, autoscalingKeys.aggregation);
  const known = ["", "linear", "weighted-exponential", "weightedExponential"];
  const ownClass = find(annotations, autoscalingKeys.class)?.value;
  if (algorithm && ownClass === classes.kpa && !known.includes(algorithm.value))
    errors.invalid(algorithm.value, algorithm.key);
  return errors;
}

/** On a Service or Configuration they would have no effect. */
export function checkNoAutoscaling(annotations: Annotations | undefined): FieldErrors {
  const errors = new FieldErrors();
  for (const key of Object.keys(annotations ?? {})) {
    if (key.startsWith(autoscalingGroup))
      errors.invalidKey(
        key,
        "",
        'autoscaling annotations must be put under "spec.template.metadata.annotations" to work',
      );
  }
  return errors;
}

function checkClass(errors: FieldErrors, annotations: Annotations | undefined): void {
  const found = find(annotations, autoscalingKeys.class);
  const known: string[] = Object.values(classes);
  if (found?.value.endsWith(".knative.dev") && !known.includes(found.value))
    errors.invalid(found.value, found.key);
}

/** 0 where it is missing or wrong, as in Knative, which then goes on with the others. */
function scaleIn(
  errors: FieldErrors,
  annotations: Annotations | undefined,
  keys: readonly string[],
): number {
  const found = find(annotations, keys);
  if (!found) return 0;
  const { key, value } = found;
  if (!integer.test(value)) {
    errors.invalid(value, key);
    return 0;
  }
  if (Number(value) < 0 || Number(value) > maxInt32) {
    errors.outOfBounds(value, 0, maxInt32, key);
    return 0;
  }
  return Number(value);
}

function checkScales(
  errors: FieldErrors,
  annotations: Annotations | undefined,
  settings: AutoscalerSettings,
): void {
  const min = scaleIn(errors, annotations, autoscalingKeys.minScale);
  const max = scaleIn(errors, annotations, autoscalingKeys.maxScale);
  const [maxKey, minKey] = [autoscalingKeys.maxScale[0], autoscalingKeys.minScale[0]];
  if (max !== 0 && max < min)
    errors.add(`max-scale=${max} is less than min-scale=${min}`, [maxKey, minKey]);
  const given = find(annotations, autoscalingKeys.maxScale);
  const limit = settings.maxScaleLimit;
  if (given && limit > 0) {
    if (max > limit) errors.outOfBounds(max, 1, limit, given.key);
    if (max === 0) errors.add(`max-scale=0 (unlimited), must be less than ${limit}`, given.key);
  }
  checkActivation(errors, annotations, min, max);
  const initial = find(annotations, autoscalingKeys.initialScale);
  if (!initial) return;
  const { key, value } = initial;
  if (!integer.test(value)) errors.invalid(value, key);
  else if (Number(value) < 0) errors.invalid(value, `${key} must be greater than 0`);
  else if (Number(value) === 0 && !settings.allowZeroInitialScale)
    errors.invalid(value, `${key}=0 not allowed by cluster`);
}

function checkActivation(
  errors: FieldErrors,
  annotations: Annotations | undefined,
  min: number,
  max: number,
): void {
  const found = find(annotations, autoscalingKeys.activationScale);
  if (!found) return;
  const { key, value } = found;
  const scale = Number(value);
  if (!integer.test(value) || Math.abs(scale) > maxInt32) errors.invalid(value, key);
  else if (min > scale)
    errors.add(`min-scale=${min} is greater than activation-scale=${scale}`, key);
  else if (max < scale && max !== 0)
    errors.add(`max-scale=${max} is less than activation-scale=${scale}`, key);
  else if (scale < 2) errors.add(`activation-scale=${scale} must be greater than 1`, key);
}

function checkNumbers(errors: FieldErrors, annotations: Annotations | undefined): void {
  const within = (keys: readonly string[], least: number, most: number) => {
    const found = find(annotations, keys);
    if (!found) return;
    const number = numberOf(found.value);
    if (number === undefined) errors.invalid(found.value, found.key);
    else if (number < least || number > most)
      errors.outOfBounds(found.value, least, most, found.key);
  };
  within(autoscalingKeys.panicWindow, 1, 100);
  within(autoscalingKeys.panicThreshold, 110, 1000);
  within(autoscalingKeys.targetUtilization, 1, 100);
  const target = find(annotations, autoscalingKeys.target);
  if (target) {
    const number = numberOf(target.value);
    if (number === undefined) errors.invalid(target.value, target.key);
    else if (number < leastTarget)
      errors.add(`target ${target.value} should be at least ${leastTarget}`, target.key);
  }
  const burst = find(annotations, autoscalingKeys.targetBurstCapacity);
  if (burst) {
    const number = numberOf(burst.value);
    if (number === undefined || (number < 0 && number !== -1))
      errors.invalid(burst.value, burst.key);
  }
}

function numberOf(text: string): number | undefined {
  const number = Number(text);
  return text.trim() === "" || !Number.isFinite(number) ? undefined : number;
}

function checkDurations(errors: FieldErrors, annotations: Annotations | undefined): void {
  const { minMs, maxMs } = windowBounds;
  const check = (keys: readonly string[], least: number, wholeSeconds: boolean) => {
    const found = find(annotations, keys);
    if (!found) return;
    const ms = parseDuration(found.value);
    if (ms === undefined) errors.invalid(found.value, found.key);
    else if (ms < least || ms > maxMs)
      errors.outOfBounds(
        formatDuration(ms),
        formatDuration(least),
        formatDuration(maxMs),
        found.key,
      );
    else if (wholeSeconds && ms % 1000 !== 0)
      errors.add("must be specified with at most second precision", found.key);
  };
  check(autoscalingKeys.window, minMs, true);
  check(autoscalingKeys.podRetention, 0, false);
  check(autoscalingKeys.scaleDownDelay, 0, true);
}

function checkMetric(
  errors: FieldErrors,
  annotations: Annotations | undefined,
  settings: AutoscalerSettings,
): void {
  const found = find(annotations, autoscalingKeys.metric);
  if (!found) return;
  const kind = find(annotations, autoscalingKeys.class)?.value ?? settings.class;
  const { key, value } = found;
  if (kind === classes.kpa && value !== "concurrency" && value !== "rps")
    errors.invalid(value, key);
  if (kind === classes.hpa && value === "") errors.invalid(value, key);
}
