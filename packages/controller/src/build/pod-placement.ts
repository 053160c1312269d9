import { type Pod } from "@spry/kube";

/** Why no node takes the Pod, in the scheduler's words; undefined while nothing is wrong. */
export function placementProblem({ status }: Pod): string | undefined {
  // What runs has been placed, whatever a scheduler says later.
  if (status?.phase && status.phase !== "Pending") return undefined;
  const unscheduled = status?.conditions?.find(
    (condition) => condition.type === "PodScheduled" && condition.status === "False",
  );
  if (!unscheduled) return undefined;
  return `the Pod cannot be scheduled: ${unscheduled.message ?? unscheduled.reason}`;
}
