/** A Function's conditions. Tools read types and reasons: none may be renamed (docs/compatibility.md#conditions). */
export const conditionTypes = ["ConfigurationReady", "BuildReady", "Running"] as const;

export type ConditionType = (typeof conditionTypes)[number];

/**
 * Ours, for tools that wait for any kind of object: the abnormal-true conditions of kstatus, which Flux, Argo CD's health
 * checks and `kubectl` plug-ins read. Each is there only while it is true: `Reconciling` while the Function is on its way
 * to what is desired, `Stalled` when a person must change something first.
 * https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
export const healthConditionTypes = ["Reconciling", "Stalled"] as const;

export type HealthConditionType = (typeof healthConditionTypes)[number];

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
