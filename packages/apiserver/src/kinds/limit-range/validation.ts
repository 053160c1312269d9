import {
  amountsOf,
  type Amounts,
  formatQuantity,
  isLabelKey,
  type UnknownObject,
} from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { qualifiedNameDetail } from "../../resources/metadata.ts";
import { isStandardResource } from "../../admission/resource-names.ts";
import { type LimitRangeItem } from "../../admission/limits/limit-range.ts";

const types = ["Container", "PersistentVolumeClaim", "Pod"];
const containerResources = ["cpu", "memory", "ephemeral-storage"];
const lists = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] as const;

/** `pkg/apis/core/validation`. */
export function validateLimitRange(object: UnknownObject, errors: FieldErrors): void {
  const seen = new Set<string>();
  for (const [index, item] of itemsOf(object).entries()) {
    const path = `spec.limits[${index}]`;
    validateType(item.type ?? "", `${path}.type`, errors);
    if (seen.has(item.type)) errors.duplicate(`${path}.type`, item.type);
    seen.add(item.type);
    validateItem(item, path, errors);
  }
}

export function itemsOf(object: UnknownObject): LimitRangeItem[] {
  return (object.spec as { limits?: LimitRangeItem[] } | undefined)?.limits ?? [];
}

function validateType(type: string, path: string, errors: FieldErrors): void {
  if (type === "") errors.invalid(path, type, "name part must be non-empty");
  if (!isLabelKey(type)) errors.invalid(path, type, qualifiedNameDetail);
  else if (!type.includes("/") && !types.includes(type)) {
    errors.invalid(path, type, "must be a standard limit type or fully qualified");
  }
}

function validateItem(item: LimitRangeItem, path: string, errors: FieldErrors): void {
  for (const list of lists) {
    if (item.type === "Pod" && (list === "default" || list === "defaultRequest")) {
      if (Object.keys(item[list] ?? {}).length > 0) {
        errors.forbidden(`${path}.${list}`, "may not be specified when `type` is 'Pod'");
      }
      continue;
    }
    for (const name of Object.keys(item[list] ?? {})) {
      validateName(item.type, name, `${path}.${list}[${name}]`, errors);
    }
  }
  if (item.type === "PersistentVolumeClaim" && !item.min?.storage && !item.max?.storage) {
    errors.required(
      `${path}.limits`,
      "either minimum or maximum storage value is required, but neither was provided",
    );
  }
  compare(item, path, errors);
}

function validateName(type: string, name: string, path: string, errors: FieldErrors): void {
  const isKey = isLabelKey(name);
  if (!isKey) errors.invalid(path, name, qualifiedNameDetail);
  if (name.includes("/")) return;
  if (isKey && !isStandardResource(name)) {
    errors.invalid(path, name, "must be a standard resource type or fully qualified");
  }
  const isContainer = containerResources.includes(name) || name.startsWith("hugepages-");
  if (type !== "PersistentVolumeClaim" && !isContainer) {
    errors.invalid(path, name, "must be a standard resource for containers");
  }
}

function compare(item: LimitRangeItem, path: string, errors: FieldErrors): void {
  const isPod = item.type === "Pod";
  const amounts: Record<string, Amounts> = {
    min: amountsOf(item.min),
    max: amountsOf(item.max),
    default: amountsOf(isPod ? {} : item.default),
    defaultRequest: amountsOf(isPod ? {} : item.defaultRequest),
  };
  const names = new Set(Object.values(amounts).flatMap((list) => [...list.keys()]));
  for (const name of names) {
    for (const [low, high, at, shown, told] of orders) {
      const less = amounts[low]?.get(name);
      const more = amounts[high]?.get(name);
      if (!less || !more || less.nano <= more.nano) continue;
      const [a, b] = [formatQuantity(less), formatQuantity(more)];
      errors.invalid(`${path}.${at}[${name}]`, shown === low ? a : b, told(a, b));
    }
  }
  compareRatios(item, path, errors);
}

type Order = [
  low: string,
  high: string,
  at: string,
  shown: string,
  told: (a: string, b: string) => string,
];
const orders: Order[] = [
  ["min", "max", "min", "min", (a, b) => `min value ${a} is greater than max value ${b}`],
  [
    "min",
    "defaultRequest",
    "defaultRequest",
    "defaultRequest",
    (a, b) => `min value ${a} is greater than default request value ${b}`,
  ],
  [
    "defaultRequest",
    "max",
    "defaultRequest",
    "defaultRequest",
    (a, b) => `default request value ${a} is greater than max value ${b}`,
  ],
  [
    "defaultRequest",
    "default",
    "defaultRequest",
    "defaultRequest",
    (a, b) => `default request value ${a} is greater than default limit value ${b}`,
  ],
  [
    "min",
    "default",
    "default",
    "min",
    (a, b) => `min value ${a} is greater than default value ${b}`,
  ],
  [
    "default",
    "max",
    "default",
    "max",
    (a, b) => `default value ${a} is greater than max value ${b}`,
  ],
];

function compareRatios(item: LimitRangeItem, path: string, errors: FieldErrors): void {
  const [min, max] = [amountsOf(item.min), amountsOf(item.max)];
  for (const [name, ratio] of amountsOf(item.maxLimitRequestRatio)) {
    const at = `${path}.maxLimitRequestRatio[${name}]`;
    const shown = formatQuantity(ratio);
    if (ratio.nano < 1_000_000_000n) errors.invalid(at, shown, `ratio ${shown} is less than 1`);
    const [low, high] = [min.get(name), max.get(name)];
    if (!low || !high) continue;
    const largest = Number(high.nano) / Number(low.nano);
    if (Number(ratio.nano) / 1e9 > largest) {
      errors.invalid(at, shown, `ratio ${shown} is greater than max/min = ${largest.toFixed(6)}`);
    }
  }
}
