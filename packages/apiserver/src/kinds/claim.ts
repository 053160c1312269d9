import { type Strategy } from "../resources/resource-type.ts";

const protection = "kubernetes.io/pvc-protection";

/** `pkg/apis/core/v1/defaults.go`, and the admission plugin that protects claims in use. */
export const claimStrategy: Strategy = {
  defaults(object) {
    const spec = object.spec as { volumeMode?: string } | undefined;
    if (spec) spec.volumeMode ??= "Filesystem";
  },
  prepare(object, { old }) {
    if (old) return;
    object.status = { phase: "Pending" };
    const { metadata } = object;
    if (!metadata.finalizers?.includes(protection)) {
      metadata.finalizers = [...(metadata.finalizers ?? []), protection];
    }
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
