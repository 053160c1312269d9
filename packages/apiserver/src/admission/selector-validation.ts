import { isLabelKey, isLabelValue, type LabelSelector } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { qualifiedNameDetail, validateLabels } from "../resources/metadata.ts";

/** `apimachinery/pkg/apis/meta/v1/validation`: label selectors in objects. */
export function validateSelector(
  selector: LabelSelector | undefined,
  path: string,
  errors: FieldErrors,
): void {
  if (!selector) return;
  validateLabels(selector.matchLabels, `${path}.matchLabels`, errors);
  for (const [index, requirement] of (selector.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${index}]`;
    const { key, operator, values = [] } = requirement;
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0) {
        errors.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values.length > 0) {
        errors.forbidden(
          `${at}.values`,
          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        );
      }
    } else errors.invalid(`${at}.operator`, operator, "not a valid selector operator");
    if (!isLabelKey(key)) errors.invalid(`${at}.key`, key, qualifiedNameDetail);
    for (const [at2, value] of values.entries()) {
      if (isLabelValue(value)) continue;
      const scratch = `${at}.values[${at2}]`;
      validateLabels({ x: value }, scratch, errors);
    }
  }
}
