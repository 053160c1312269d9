/** A field of the status of Deployments and ReplicaSets since Kubernetes 1.33: Pods that are on their way out. */
export interface Terminating {
  terminatingReplicas?: number;
}
