import { deepEqual, type Deployment, getCondition, isNotFound, resources } from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { type DeploymentCondition, hasDeadline, withCondition } from "./deployment-conditions.ts";
import { type DeploymentStatus } from "./deployment-status.ts";
import { target } from "./scaling.ts";

/** Reports that a rollout was paused or resumed, before anything else happens; the deadline does not count meanwhile. */
export async function writePause(
  { client, clock }: ControllerContext,
  deployment: Deployment,
): Promise<Deployment> {
  if (!hasDeadline(deployment)) return deployment;
  const conditions = (deployment.status?.conditions ?? []) as DeploymentCondition[];
  const reason = getCondition(conditions, "Progressing")?.reason;
  // What has timed out stays said.
  if (reason === "ProgressDeadlineExceeded") return deployment;
  const isPaused = deployment.spec?.paused ?? false;
  if (isPaused === (reason === "DeploymentPaused")) return deployment;
  const news = isPaused
    ? { reason: "DeploymentPaused", message: "Deployment is paused" }
    : { reason: "DeploymentResumed", message: "Deployment is resumed" };
  const condition = { type: "Progressing", status: "Unknown", ...news } as const;
  return client.patch(
    resources.deployments,
    target(deployment),
    {
      metadata: { uid: deployment.metadata.uid },
      status: { conditions: withCondition(conditions, condition, clock) },
    },
    { subresource: "status" },
  );
}

export async function writeStatus(
  { client }: ControllerContext,
  deployment: Deployment,
  status: DeploymentStatus,
): Promise<void> {
  if (deepEqual(deployment.status ?? {}, status)) return;
  // A patch: a change of the spec in between does not hinder what was observed.
  const gone = Object.keys(deployment.status ?? {}).filter((field) => !(field in status));
  const patch = { ...Object.fromEntries(gone.map((field) => [field, null])), ...status };
  await client
    .patch(
      resources.deployments,
      target(deployment),
      { metadata: { uid: deployment.metadata.uid }, status: patch },
      { subresource: "status" },
    )
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}
