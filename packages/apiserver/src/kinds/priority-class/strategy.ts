import { type FieldErrors } from "../../field-errors.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { type PriorityClass } from "../../admission/priority/priority.ts";

const highestOfUsers = 1_000_000_000;
const systemPrefix = "system-";

/** Made at start-up: every cluster has them (`pkg/apis/scheduling/v1/helpers.go`). */
export const systemClasses = [
  {
    name: "system-node-critical",
    value: 2_000_001_000,
    description: "Used for system critical pods that must not be moved from their current node.",
  },
  {
    name: "system-cluster-critical",
    value: 2_000_000_000,
    description:
      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
  },
];

/** `pkg/apis/scheduling/v1/defaults.go`, `pkg/apis/scheduling/validation`. */
export const priorityClassStrategy: Strategy = {
  prepare(object, { old }) {
    // Of what counts, nothing can change.
    if (!old) object.metadata.generation = 1;
  },
  defaults(object) {
    const priority = object as PriorityClass;
    priority.preemptionPolicy ??= "PreemptLowerPriority";
  },
  validate(object, errors, old) {
    const next = object as PriorityClass;
    if (old) return validateUpdate(next, old, errors);
    const { value = 0, preemptionPolicy = "" } = next;
    const name = next.metadata.name ?? "";
    if (name.startsWith(systemPrefix)) {
      const problem = systemProblem(name, next);
      if (problem) {
        errors.forbidden(
          "metadata.name",
          `priority class names with '${systemPrefix}' prefix are reserved for system use only. error: ${problem}`,
        );
      }
    } else if (value > highestOfUsers) {
      const told = `maximum allowed value of a user defined priority is ${highestOfUsers}`;
      errors.forbidden("value", told);
    }
    const policies = ["Never", "PreemptLowerPriority"];
    if (!policies.includes(preemptionPolicy)) {
      errors.unsupported("preemptionPolicy", preemptionPolicy, ["PreemptLowerPriority", "Never"]);
    }
  },
};

function validateUpdate(next: PriorityClass, old: PriorityClass, errors: FieldErrors): void {
  if ((next.value ?? 0) !== (old.value ?? 0)) {
    errors.forbidden("value", "may not be changed in an update.");
  }
  if (next.preemptionPolicy !== old.preemptionPolicy) {
    errors.invalid("preemptionPolicy", next.preemptionPolicy, "field is immutable");
  }
}

function systemProblem(
  name: string,
  { value = 0, globalDefault = false }: PriorityClass,
): string | undefined {
  const known = systemClasses.find((each) => each.name === name);
  if (!known) return `${name} is not a known system priority class`;
  if (value !== known.value) return `value of ${name} PriorityClass must be ${known.value}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
