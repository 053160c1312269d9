import { type SubscriptionCondition } from "@spry/function";
import { type KubeObject, type Resource } from "@spry/kube";

/** `eventing.kyma-project.io/v1alpha1 Subscription` (eventing-manager, `api/eventing/v1alpha1`). */
export interface SubscriptionV1alpha1 extends KubeObject {
  spec: {
    id?: string;
    protocol?: string;
    protocolsettings?: ProtocolSettings;
    sink: string;
    filter?: {
      dialect?: string;
      filters?: { eventSource?: FilterPart; eventType?: FilterPart }[];
    };
    config?: { maxInFlightMessages?: number };
  };
  status?: {
    conditions?: SubscriptionCondition[];
    ready?: boolean;
    cleanEventTypes?: string[];
    config?: { maxInFlightMessages?: number };
  };
}

export interface FilterPart {
  property?: string;
  type?: string;
  value?: string;
}

export interface ProtocolSettings {
  contentMode?: string;
  exemptHandshake?: boolean;
  qos?: string;
  webhookAuth?: {
    type?: string;
    grantType?: string;
    clientId?: string;
    clientSecret?: string;
    tokenUrl?: string;
    scope?: string[];
  };
}

export const subscriptionsV1alpha1: Resource<SubscriptionV1alpha1> = {
  group: "eventing.kyma-project.io",
  version: "v1alpha1",
  kind: "Subscription",
  plural: "subscriptions",
  namespaced: true,
};
