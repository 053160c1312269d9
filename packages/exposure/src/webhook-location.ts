import { apiRules } from "@spry/function";
import { type ValidatingWebhookConfiguration } from "@spry/kube";

/** Where an API server finds the webhooks, and how it knows them: by a URL (without a path) or a Service. */
export interface WebhookLocation {
  /** PEM, in base64. */
  caBundle: string;
  url?: string;
  service?: { name: string; namespace: string; port?: number };
}

export const validationPath = "/validation/apirule";
export const validatingConfigurationName = "validation.webhook.apirule.gateway.kyma-project.io";

export function webhookClientConfig({ caBundle, url, service }: WebhookLocation, path: string) {
  if (service) return { caBundle, service: { port: 443, ...service, path } };
  if (url === undefined)
    throw new Error("locating the webhooks: neither a URL nor a Service was specified");
  return { caBundle, url: new URL(path, url).href };
}

/** Without a location the configuration is empty: nothing is asked. */
export function validatingConfiguration(
  location: WebhookLocation | undefined,
): ValidatingWebhookConfiguration {
  const webhook = location && {
    name: validatingConfigurationName,
    admissionReviewVersions: ["v1"],
    clientConfig: webhookClientConfig(location, validationPath),
    failurePolicy: "Fail" as const,
    // Whatever the version of the request, the object comes as the stored one.
    matchPolicy: "Equivalent" as const,
    sideEffects: "None" as const,
    timeoutSeconds: 10,
    rules: [
      {
        apiGroups: [apiRules.group],
        apiVersions: [apiRules.version],
        operations: ["CREATE" as const, "UPDATE" as const],
        resources: [apiRules.plural],
        scope: "Namespaced" as const,
      },
    ],
  };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: validatingConfigurationName },
    webhooks: webhook ? [webhook] : [],
  };
}
