/** `admissionregistration.k8s.io/v1 WebhookClientConfig`, and that of a CRD's conversion. */
export interface ClientConfig {
  url?: string;
  caBundle?: string;
  service?: { namespace: string; name: string; path?: string; port?: number };
}

/** `spec.conversion.webhook` of a CustomResourceDefinition. */
export interface ConversionWebhook {
  clientConfig: ClientConfig;
  conversionReviewVersions: string[];
}
