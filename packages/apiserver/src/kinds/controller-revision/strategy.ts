import { deepEqual, type UnknownObject } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";

/** `ValidateControllerRevisionCreate` and `…Update` in `pkg/apis/apps/validation`: what a revision holds never changes. */
export const controllerRevisionStrategy: Strategy = {
  validate(object, errors, old) {
    const { revision = 0, data } = object as Revision;
    if (revision < 0) errors.invalid("revision", revision, "must be greater than or equal to 0");
    if (old) {
      const isSame = deepEqual(data, (old as Revision).data);
      if (!isSame) errors.quoted("data", goJson(data), "field is immutable");
    } else if (data === undefined || data === null) {
      errors.required("data", "data is mandatory");
    } else if (typeof data !== "object" || Array.isArray(data)) {
      errors.required("data", "data must be a valid JSON object");
    }
  },
};

interface Revision extends UnknownObject {
  revision?: number;
  data?: unknown;
}

/** As Go prints it, with the keys of maps in order. */
function goJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
