import { type ScaleConfig } from "@spry/function";
import { type Condition, type KubeObject, type Resource } from "@spry/kube";

/** An operator's settings for the cluster (docs/compatibility.md#serverless-object). Numbers and durations are strings. */
export interface ServerlessSpec {
  dockerRegistry?: { enableInternal?: boolean; secretName?: string };
  tracing?: { endpoint?: string };
  eventing?: {
    endpoint?: string;
    /** Ours: NATS servers of the operator's own, which keep events and calls in a cluster. */
    nats?: NatsSpec;
  };
  targetCPUUtilizationPercentage?: string;
  functionRequeueDuration?: string;
  functionBuildExecutorArgs?: string;
  functionBuildMaxSimultaneousJobs?: string;
  healthzLivenessTimeout?: string;
  defaultBuildJobPreset?: string;
  defaultRuntimePodPreset?: string;
  logLevel?: string;
  logFormat?: string;
  enableNetworkPolicies?: boolean;
  /** Ours: host names and networks of Git servers that may be asked although they are this platform's or its machine's. */
  gitAllowedAddresses?: string[];
  /** Ours: how many revisions of each Function are kept. */
  functionHistoryLimit?: string;
  /** Ours: the `scaleConfig` of new Functions that have none, with `minReplicas: 0` to serve them on demand. */
  defaultScaleConfig?: ScaleConfig;
}

export interface NatsSpec {
  /** `nats://host:port` or `tls://host:port`, of one cluster. */
  servers: string[];
  /** A Secret in the platform's namespace, with `token`, or `username` and `password`, and perhaps `ca.crt`. */
  secretName?: string;
  /** Whether the credentials may go to `nats://` servers, without TLS. */
  allowPlaintext?: boolean;
  /** On how many of the servers each message is: 1, 3 or 5. */
  replicas?: number;
}

export type ServerlessState = "Ready" | "Processing" | "Warning" | "Error" | "Deleting";

export interface ServerlessStatus {
  state?: ServerlessState;
  /** Whether this object is the one in effect; `True` or `False`. */
  served?: "True" | "False";
  conditions?: Condition[];
  /** `internal`, or the address of the registry in use. */
  dockerRegistry?: string;
  tracingEndpoint?: string;
  eventingEndpoint?: string;
  targetCPUUtilizationPercentage?: string;
  functionRequeueDuration?: string;
  functionBuildExecutorArgs?: string;
  functionBuildMaxSimultaneousJobs?: string;
  healthzLivenessTimeout?: string;
  defaultBuildJobPreset?: string;
  defaultRuntimePodPreset?: string;
  logLevel?: string;
  logFormat?: string;
  networkPoliciesEnabled?: string;
  functionHistoryLimit?: string;
  /** As in the spec; omitted when the spec has none. */
  defaultScaleConfig?: ScaleConfig;
}

export interface Serverless extends KubeObject {
  spec?: ServerlessSpec;
  status?: ServerlessStatus;
}

export const serverlesses: Resource<Serverless> = {
  group: "operator.kyma-project.io",
  version: "v1alpha1",
  kind: "Serverless",
  plural: "serverlesses",
  namespaced: true,
};

export const deletionHook = "serverless-operator.kyma-project.io/deletion-hook";
