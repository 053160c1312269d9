import { randomUUID } from "node:crypto";
import { type LimitRangeItem } from "../../admission/limits/limit-range.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { itemsOf, validateLimitRange } from "./validation.ts";

export const limitRangeStrategy: Strategy = {
  defaults: (object) => itemsOf(object).forEach(setDefaults),
  prepare: ({ metadata }) => void (metadata.name ||= randomUUID()),
  validate: (object, errors) => validateLimitRange(object, errors),
};

/** `pkg/apis/core/v1/defaults.go`. */
function setDefaults(item: LimitRangeItem): void {
  if (item.type !== "Container") return;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  if (Object.keys(limits).length > 0) item.default = limits;
  if (Object.keys(requests).length > 0) item.defaultRequest = requests;
}
