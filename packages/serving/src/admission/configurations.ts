import { knative } from "@spry/function";
import { type MutatingWebhookConfiguration, type ValidatingWebhookConfiguration } from "@spry/kube";
import { servingDefaultingPath, servingValidationPath } from "./admission.ts";

/** Where an API server finds the webhook at this path, and how it knows it. */
export type ClientConfigOf = (path: string) => {
  caBundle?: string;
  url?: string;
  service?: { name: string; namespace: string; path?: string; port?: number };
};

/** The objects' names are ours; those of the webhooks, which stand in their answers, are Knative's. */
export const servingWebhookNames = {
  mutating: "webhook.serving.spry.io",
  validating: "validation.webhook.serving.spry.io",
} as const;

/** The two objects that make an API server ask about Services, Configurations, Revisions and Routes. */
export function servingAdmissionConfigurations(
  clientConfigOf: ClientConfigOf,
): [MutatingWebhookConfiguration, ValidatingWebhookConfiguration] {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const webhook = (path: string) => ({
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfigOf(path),
    failurePolicy: "Fail" as const,
    matchPolicy: "Equivalent" as const,
    sideEffects: "None" as const,
    timeoutSeconds: 10,
    rules: [
      {
        apiGroups: [knative.services.group],
        apiVersions: [knative.services.version],
        operations: ["CREATE" as const, "UPDATE" as const],
        resources: Object.values(knative).map(({ plural }) => plural),
        scope: "Namespaced" as const,
      },
    ],
  });
  return [
    {
      apiVersion,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: servingWebhookNames.mutating },
      webhooks: [{ name: "webhook.serving.knative.dev", ...webhook(servingDefaultingPath) }],
    },
    {
      apiVersion,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: servingWebhookNames.validating },
      webhooks: [
        { name: "validation.webhook.serving.knative.dev", ...webhook(servingValidationPath) },
      ],
    },
  ];
}
