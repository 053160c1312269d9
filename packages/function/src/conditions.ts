/** A Function's conditions. Tools read types and reasons: none may be renamed (docs/compatibility.md#conditions). */
export const conditionTypes = ["ConfigurationReady", "BuildReady", "Running"] as const;

export type ConditionType = (typeof conditionTypes)[number];

/** Every reason, with the one status that it stands for. */
export const statusOfReason = {
  InvalidFunctionSpec: "False",
  FunctionSpecValidated: "True",
  ConfigMapCreated: "True",
  ConfigMapUpdated: "True",
  /** Ours: the Git server is being asked for the commit. */
  SourceResolving: "Unknown",
  SourceUpdated: "True",
  SourceUpdateFailed: "False",
  /** Ours: the build waits for a free slot, or for what it needs in its namespace. */
  JobWaiting: "Unknown",
  JobCreated: "Unknown",
  JobRunning: "Unknown",
  JobUpdated: "Unknown",
  JobsDeleted: "Unknown",
  JobFinished: "True",
  JobFailed: "False",
  DeploymentCreated: "Unknown",
  DeploymentUpdated: "Unknown",
  DeploymentWaiting: "Unknown",
  MinReplicasNotAvailable: "Unknown",
  DeploymentReady: "True",
  DeploymentFailed: "False",
  ServiceCreated: "Unknown",
  ServiceUpdated: "Unknown",
  ServiceFailed: "False",
  HorizontalPodAutoscalerCreated: "Unknown",
  HorizontalPodAutoscalerUpdated: "Unknown",
} as const satisfies Record<string, "True" | "False" | "Unknown">;

export type Reason = keyof typeof statusOfReason;
