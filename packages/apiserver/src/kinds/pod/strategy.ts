import { deepEqual, type Pod } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { setPodDefaults, setPodSpecDefaults } from "./spec.ts";
import { podNameWarnings, podWarnings } from "../warnings.ts";
import { validatePodSpec } from "./validation/spec.ts";

type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

export const podStrategy: Strategy = {
  generation: true,
  selectableFields: [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
  ],
  defaults(object) {
    const pod = object as unknown as Pod;
    setPodSpecDefaults(pod.spec);
    if (!pod.spec) return;
    pod.spec.enableServiceLinks ??= true;
    setPodDefaults(pod.spec);
  },
  prepare(object, { old }) {
    if (old) return;
    const pod = object as unknown as Pod;
    object.status = { phase: "Pending", qosClass: qosClassOf(pod) };
    if (!pod.spec) return;
    pod.spec.serviceAccountName ??= "default";
    pod.spec.serviceAccount ??= pod.spec.serviceAccountName;
    tolerateBriefly(pod.spec);
  },
  // People hardly ever write to a Pod that is there already.
  warnings: (object, old) =>
    old ? [] : [...podNameWarnings(object, "the Pod's hostname"), ...podWarnings(object)],
  validate(object, errors, old, subresource) {
    const pod = object as unknown as Pod;
    validatePodSpec(pod.spec, "spec", errors);
    const { ephemeralContainers } = (pod.spec ?? {}) as { ephemeralContainers?: unknown[] };
    if (!old && ephemeralContainers?.length)
      errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    const before = old as unknown as Pod | undefined;
    // Only a binding gives a Pod its node.
    if (subresource === "binding") return;
    if (before) checkGates(pod, before, errors);
    if (before && !deepEqual(fixedPart(before), fixedPart(pod))) {
      errors.forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
      );
    }
  },
};

const briefTolerations = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const briefSeconds = 300;

/** As the admission plugin DefaultTolerationSeconds: a Pod stays for five minutes on a node that is lost. */
function tolerateBriefly(spec: NonNullable<Pod["spec"]>): void {
  const given = spec.tolerations ?? [];
  const added = briefTolerations
    .filter((key) => !given.some((each) => !each.key || each.key === key))
    .map((key) => ({
      key,
      operator: "Exists" as const,
      effect: "NoExecute" as const,
      tolerationSeconds: briefSeconds,
    }));
  if (added.length > 0) spec.tolerations = [...given, ...added];
}

/** Gates may only be opened. */
function checkGates(pod: Pod, before: Pod, errors: FieldErrors): void {
  const known = new Set((before.spec?.schedulingGates ?? []).map(({ name }) => name));
  for (const { name } of pod.spec?.schedulingGates ?? []) {
    if (known.has(name)) continue;
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return errors.forbidden("spec.schedulingGates", detail);
  }
}

/** What of a Pod cannot change once it is created; a node is given to it by a binding only once. */
function fixedPart({ spec }: Pod): unknown {
  if (!spec) return undefined;
  const { containers, initContainers, activeDeadlineSeconds: _, ...others } = spec;
  const { tolerations: __, schedulingGates: ____, ...rest } = others;
  const withoutImages = (list: typeof containers | undefined) =>
    list?.map(({ image: ___, ...container }) => container);
  return {
    ...rest,
    containers: withoutImages(containers),
    initContainers: withoutImages(initContainers),
  };
}

/** `pkg/apis/core/v1/helper/qos`: from requests and limits of cpu and memory. */
function qosClassOf({ spec }: Pod): QosClass {
  const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const counted = ["cpu", "memory"];
  let any = false;
  let guaranteed = true;
  for (const { resources } of all) {
    for (const name of counted) {
      const request = resources?.requests?.[name];
      const limit = resources?.limits?.[name];
      if (request !== undefined || limit !== undefined) any = true;
      if (limit === undefined || request !== limit) guaranteed = false;
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}
