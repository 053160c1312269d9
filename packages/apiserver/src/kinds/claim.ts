import { type Strategy } from "../resources/resource-type.ts";

/**
 * `pkg/apis/core/v1/defaults.go`. Claims get no finalizer that protects them while in use: no Pod of
 * the embedded engine can use one, and nobody would take the protection away again.
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
  validate(object, errors) {
    const { accessModes, resources } = (object.spec ?? {}) as {
      accessModes?: string[];
      resources?: { requests?: { storage?: string } };
    };
    if (!accessModes?.length)
      errors.required("spec.accessModes", "at least 1 access mode is required");
    if (resources?.requests?.storage === undefined) errors.required("spec.resources[storage]");
  },
};
