import { subscriptions } from "@spry/function";
import { type CustomResourceDefinition } from "@spry/kube";
import { bounds } from "../bounds.ts";
import {
  deliveryRanges,
  maxFilterAttributes,
  maxOrderByLength,
  orderByPattern,
} from "../validation/extensions.ts";
import { subscriptionsV1alpha1 } from "../conversion/v1alpha1.ts";

export const ourLabels = { "app.kubernetes.io/managed-by": "spry" };

type Version = CustomResourceDefinition["spec"]["versions"][number];
type Schema = Record<string, unknown>;

const text = (maxLength: number, rest: Schema = {}): Schema => ({
  type: "string",
  maxLength,
  ...rest,
});
const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required }),
});
const list = (items: Schema, maxItems: number): Schema => ({ type: "array", items, maxItems });
const map = (values: Schema, maxProperties: number): Schema => ({
  type: "object",
  additionalProperties: values,
  maxProperties,
});
const integer = (minimum: number, maximum: number, description: string): Schema => ({
  type: "integer",
  minimum,
  maximum,
  description,
});
/** What is read, and written by the controller alone. */
const status: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

const attributes = map(text(bounds.nameLength), maxFilterAttributes);
const conditions = { exact: attributes, prefix: attributes, suffix: attributes };
const filter = object({
  ...conditions,
  not: { ...object(conditions), maxProperties: 1, minProperties: 1 },
});

const spec = object(
  {
    id: text(253),
    sink: text(bounds.sinkLength),
    typeMatching: { type: "string", default: "standard" },
    source: text(bounds.nameLength),
    types: list(text(bounds.nameLength), bounds.types),
    config: { ...map(text(bounds.attributeBytes), 32), default: { maxInFlightMessages: "10" } },
    filters: {
      ...list({ ...filter, maxProperties: 1, minProperties: 1 }, bounds.filters),
      description: "Conditions on the event's attributes, all of which must hold.",
    },
    delivery: object({
      maxAttempts: integer(
        ...deliveryRanges.maxAttempts,
        "Then the event becomes a dead letter; 100 by default.",
      ),
      backoffSeconds: integer(
        ...deliveryRanges.backoffSeconds,
        "Before the second attempt; doubled each time. 1 by default.",
      ),
      maxBackoffSeconds: integer(
        ...deliveryRanges.maxBackoffSeconds,
        "The longest pause; 60 by default.",
      ),
      jitterPercent: integer(
        ...deliveryRanges.jitterPercent,
        "By how much pauses differ, at random; 20 by default.",
      ),
      timeoutSeconds: integer(...deliveryRanges.timeoutSeconds, "For one attempt; 60 by default."),
      deadlineSeconds: integer(
        ...deliveryRanges.deadlineSeconds,
        "From the event's acceptance on.",
      ),
      orderBy: text(maxOrderByLength, {
        pattern: orderByPattern,
        description:
          "Events with the same value of this attribute are delivered one after the other.",
      }),
      deadLetters: {
        type: "string",
        enum: ["Keep", "Discard"],
        description: "What becomes of an event that cannot be delivered; Keep by default.",
      },
    }),
  },
  ["sink", "types"],
);

const part = object({ property: text(100), type: text(100), value: text(bounds.nameLength) });
const olderSpec = object(
  {
    id: text(253),
    protocol: text(100),
    protocolsettings: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    sink: text(bounds.sinkLength),
    filter: object({
      dialect: text(500),
      filters: list(object({ eventSource: part, eventType: part }), bounds.types),
    }),
    config: object({ maxInFlightMessages: { type: "integer", minimum: 1 } }),
  },
  ["filter", "sink"],
);

/** The CustomResourceDefinition of Subscriptions, with the webhook that converts between its versions. */
export function subscriptionCrd(webhook: object): CustomResourceDefinition {
  const { group, kind, plural } = subscriptions;
  const columns = [
    { name: "Ready", type: "string", jsonPath: ".status.ready" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ];
  const version = (name: string, ownSpec: Schema): Version => ({
    name,
    served: true,
    storage: name === subscriptions.version,
    subresources: { status: {} },
    additionalPrinterColumns: columns,
    schema: { openAPIV3Schema: object({ spec: ownSpec, status }, []) },
  });
  const older = version(subscriptionsV1alpha1.version, olderSpec);
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: ourLabels },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: "subscription",
        categories: ["kyma-eventing"],
      },
      versions: [
        version(subscriptions.version, spec),
        {
          ...older,
          deprecated: true,
          deprecationWarning: `${group}/v1alpha1 Subscription is deprecated; use ${subscriptions.version}`,
          additionalPrinterColumns: [
            ...columns,
            { name: "Clean Event Types", type: "string", jsonPath: ".status.cleanEventTypes" },
          ],
        },
      ],
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig: webhook, conversionReviewVersions: ["v1"] },
      },
    },
  };
}
