import { deepEqual, type LabelSelector, parseQuantity } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";
import { checkName, checkOneOf, checkSelector } from "../../resources/validation/formats.ts";

/**
 * `pkg/apis/core/v1/defaults.go`. Claims get no finalizer that protects them while in use: no Pod of the embedded
 * engine can use one, and no controller would remove the finalizer.
 */
export const claimStrategy: Strategy = {
  defaults(object) {
    const spec = object.spec as { volumeMode?: string } | undefined;
    if (spec) spec.volumeMode ??= "Filesystem";
  },
  prepare(object, { old }) {
    if (old) return;
    object.status = { phase: "Pending" };
  },
  validate(object, errors, old) {
    const spec = (object.spec ?? {}) as ClaimSpec;
    const { accessModes, resources, storageClassName, volumeMode, selector } = spec;
    if (!accessModes?.length)
      errors.required("spec.accessModes", "at least 1 access mode is required");
    checkSelector(selector, "spec.selector", errors);
    for (const mode of accessModes ?? []) checkOneOf(mode, modes, "spec.accessModes", errors);
    const amount = resources?.requests?.storage;
    const path = "spec.resources[storage]";
    if (amount === undefined) errors.required(path);
    else if (parseQuantity(amount).nano <= 0n)
      errors.invalid(path, amount, "must be greater than zero");
    if (storageClassName) checkName(storageClassName, "subdomain", "spec.storageClassName", errors);
    checkOneOf(volumeMode, ["Block", "Filesystem"], "spec.volumeMode", errors);
    if (!old) return;
    const { resources: _, ...fixed } = spec;
    const { resources: __, ...before } = (old.spec ?? {}) as ClaimSpec;
    if (!deepEqual(fixed, before)) {
      errors.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
      );
    }
  },
};

interface ClaimSpec {
  accessModes?: string[];
  resources?: { requests?: { storage?: string } };
  storageClassName?: string;
  volumeMode?: string;
  selector?: LabelSelector;
}

const modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
