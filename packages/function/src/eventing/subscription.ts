import { type KubeObject, type Resource } from "@spry/kube/browser";

/**
 * `eventing.kyma-project.io/v1alpha2 Subscription`: which events a Service gets (kyma-project/eventing-manager,
 * `api/eventing/v1alpha2`). `filters` and `delivery` are ours.
 */
export interface Subscription extends KubeObject {
  spec: SubscriptionSpec;
  status?: SubscriptionStatus;
}

export interface SubscriptionSpec {
  id?: string;
  /** `http://<service>.<namespace>.svc.cluster.local`, in the Subscription's own namespace. */
  sink: string;
  /** How source and types are compared; `standard` by default. */
  typeMatching?: "standard" | "exact";
  source?: string;
  types: string[];
  /** Of the original; `maxInFlightMessages` counts here. */
  config?: Record<string, string>;
  /** Conditions on attributes, all of which must hold. */
  filters?: SubscriptionFilter[];
  delivery?: DeliverySpec;
}

/** Exactly one of its members (CloudEvents Subscriptions, section 3.2.4). */
export interface SubscriptionFilter {
  exact?: Record<string, string>;
  prefix?: Record<string, string>;
  suffix?: Record<string, string>;
  not?: {
    exact?: Record<string, string>;
    prefix?: Record<string, string>;
    suffix?: Record<string, string>;
  };
}

export interface DeliverySpec {
  /** Then the event becomes a dead letter; 100 by default. */
  maxAttempts?: number;
  /** Before the second attempt, and doubled before each further one; 1 by default. */
  backoffSeconds?: number;
  /** 60 by default. */
  maxBackoffSeconds?: number;
  /** By how much a pause is shorter or longer, at random; 20 by default. */
  jitterPercent?: number;
  /** For one attempt; 60 by default. */
  timeoutSeconds?: number;
  /** From the event's acceptance on; then it becomes a dead letter. The queue's retention by default. */
  deadlineSeconds?: number;
  /** Events with the same value of this attribute are delivered one after the other. */
  orderBy?: string;
  /** What becomes of an event that cannot be delivered; `Keep` by default. */
  deadLetters?: "Keep" | "Discard";
}

export interface SubscriptionCondition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface SubscriptionStatus {
  conditions?: SubscriptionCondition[];
  ready?: boolean;
  types?: { originalType: string; cleanType: string }[];
  backend?: { types?: { originalType: string; consumerName?: string }[] };
}

export const subscriptions: Resource<Subscription> = {
  group: "eventing.kyma-project.io",
  version: "v1alpha2",
  kind: "Subscription",
  plural: "subscriptions",
  namespaced: true,
};
